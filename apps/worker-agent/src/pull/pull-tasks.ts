import type { PullEvent, Recorded } from '#domain/events/index.js';
import type { WorkerId } from '#domain/ids.js';
import { evolvePulls, initialPulls, type Pull, type PullsState } from '#domain/pulls/pulls.js';
import type { DiskLimit } from '#domain/worker/disk-limit.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { FactWriter } from '../agent/facts.js';
import type { Catalog } from '../models/catalog.js';
import type { HubAccess } from './hub.js';
import { pull } from './pull.js';

export interface PullTasksOptions {
  readonly workerId: WorkerId;
  readonly log: Pick<EventLog, 'subscribe'>;
  readonly facts: Pick<FactWriter, 'pull'>;
  readonly catalog: Pick<Catalog, 'rescan'>;
  readonly models: string;
  readonly access: HubAccess;
  readonly diskLimit: () => DiskLimit | undefined;
  readonly logger: Logger;
}

/**
 * Fetches what the log asks for, one after the other, and tells it of each file. A transfer that an agent before this one
 * began goes on where it was cut off.
 */
export class PullTasks {
  readonly #o: PullTasksOptions;
  readonly #stopping = new AbortController();
  readonly #taken = new Set<string>();
  #state: PullsState;
  #live = false;
  #last: Promise<void> = Promise.resolve();
  #subscription: Subscription | undefined;

  constructor(options: PullTasksOptions) {
    this.#o = options;
    this.#state = initialPulls(options.workerId);
  }

  start(): void {
    const { log, workerId, logger } = this.#o;
    this.#subscription = log.subscribe<PullEvent>(streams.pull(workerId), {
      onEvent: (recorded: Recorded<PullEvent>) => {
        this.#state = evolvePulls(this.#state, recorded);
        if (this.#live) this.#look();
      },
      onCaughtUp: () => {
        this.#live = true;
        this.#look();
      },
    });
    this.#subscription.ended.catch((error: unknown) =>
      logger.error({ err: error }, 'what is to be fetched is not heard any more'),
    );
  }

  /** What is under way stays open in the log, and in part on the disk: the next agent goes on with it. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the agent stops'));
    await this.#subscription?.stop();
    await this.#last;
  }

  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #look(): void {
    for (const asked of this.#state.pulls.values()) {
      if (asked.state !== 'running' || asked.source === '' || this.#taken.has(asked.pullId)) continue;
      this.#taken.add(asked.pullId);
      this.#last = this.#last.then(() => this.#fetch(asked));
    }
  }

  async #fetch({ pullId, source }: Pull): Promise<void> {
    const { facts, catalog, models, access, diskLimit, logger } = this.#o;
    const { signal } = this.#stopping;
    if (this.#isStopped()) return;
    const why = { correlationId: pullId, causationId: pullId };
    const tell = (event: PullEvent, ...of: string[]) =>
      facts.pull(derivedId(event.type, pullId, ...of), event, why);
    const seen = { began: false };
    const told: Promise<unknown>[] = [];
    try {
      const pulled = await pull({
        source,
        models,
        access,
        diskLimit,
        signal,
        progress: { start: () => (seen.began = true), at: () => undefined, stop: () => undefined },
        onFile: (file) => told.push(tell({ type: 'FilePulled', data: { pullId, ...file } }, file.file)),
      });
      await Promise.all(told);
      await tell({ type: 'PullFinished', data: { pullId } });
      logger.info({ model: pulled.modelKey, artifact: pulled.label }, 'a model was fetched');
      await catalog.rescan();
    } catch (error) {
      if (this.#isStopped()) return;
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn({ source, reason }, 'a model could not be fetched');
      const end: PullEvent = seen.began
        ? { type: 'PullFailed', data: { pullId, reason } }
        : { type: 'PullRefused', data: { pullId, reason } };
      await tell(end).catch((failure: unknown) =>
        logger.warn({ err: failure }, 'the log was not told that a model could not be fetched'),
      );
    }
  }
}
