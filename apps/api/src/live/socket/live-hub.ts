import type { CallEvent, Recorded, WorkerEvent } from '#domain/events/index.js';
import { UNRESOLVED, type WorkerId } from '#domain/ids.js';
import type { LiveTopic } from '#domain/wire/index.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import type { Logger } from '#runtime/logger.js';
import type { Fleet } from '../../fleet/fleet.js';
import { LIVE_PREFIXES, LiveFold } from '../fold/live-fold.js';
import { changesFrame, LIVE_TOPICS, snapshotFrame, type Subscribe } from './frames.js';
import type { LiveClient } from './live-client.js';
import { Ring, type RingEntry } from './ring.js';

/** What the hub needs of the log. */
export type LiveLog = Pick<EventLog, 'subscribeAll' | 'readBackwards' | 'fold'>;

export interface LiveHubOptions {
  readonly log: LiveLog;
  readonly fleet: Pick<Fleet, 'position' | 'workers' | 'catalogs' | 'models'>;
  readonly logger: Pick<Logger, 'error'>;
}

/** Changes go out together, at most so late. */
const LINGER_MS = 50;
/** Changes that are remembered for clients that come back. */
const REMEMBERED = 20_000;
/** Of each model's calls, looked back for what a new client is shown. */
const PAST_CALL_EVENTS = 40;
/**
 * Of each worker's stream it is looked back for so many decisions: as far as they usually are, else as far as is ever
 * looked, since what others use of a busy machine is written more often than anything is decided.
 */
const PAST_DECISIONS = 20;
const PAST_WORKER_EVENTS = { usual: 400, most: 25_600 };
const READS_AT_ONCE = 8;
/** A client may have seen a position, through another api, that has not come here yet. */
const AHEAD_MS = 5000;

/**
 * The log as clients of `/live` see it: one subscription and one fold for all of them, made when the first comes. What
 * happens within one linger goes out as one frame, which is made into text once for all clients with the same topics.
 */
export class LiveHub {
  readonly #o: LiveHubOptions;
  readonly #clients = new Set<LiveClient>();
  readonly #watchers = new Set<() => void>();
  #started: Promise<void> | undefined;
  #fold: LiveFold | undefined;
  #ring = new Ring(0n, REMEMBERED);
  #position = 0n;
  #pending: RingEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #flushedAtMs = 0;
  #subscription: Subscription | undefined;

  constructor(options: LiveHubOptions) {
    this.#o = options;
  }

  /** Up to which everything is folded. It moves on events alone. */
  get position(): bigint {
    return this.#position;
  }

  get clients(): ReadonlySet<LiveClient> {
    return this.#clients;
  }

  /** Resolves when everything that was written so far is folded. Nothing costs anything before the first call. */
  start(): Promise<void> {
    this.#started ??= this.#begin().catch((error: unknown) => {
      this.#started = undefined;
      throw error;
    });
    return this.#started;
  }

  /** A client names its topics, the first time or again. */
  async subscribe(client: LiveClient, { topics, since }: Subscribe): Promise<void> {
    await this.start();
    this.#clients.delete(client);
    if (since !== undefined && since > this.#position)
      await this.#until(() => this.#position >= since, AHEAD_MS);
    // What others still wait for must not reach this one twice.
    this.#flush();
    const missed = since === undefined ? undefined : this.#ring.after(since);
    client.begin(topics, missed && since !== undefined ? since : this.#position);
    if (missed && since !== undefined && since <= this.#position) {
      const text = changesFrame(missed, topics, this.#position);
      if (text === undefined) client.passed(this.#position);
      else client.send(text, this.#position);
    } else {
      for (const topic of LIVE_TOPICS)
        if (topics.has(topic)) client.send(this.#snapshot(topic), this.#position);
    }
    this.#clients.add(client);
  }

  leave(client: LiveClient): void {
    this.#clients.delete(client);
  }

  /** Resolves when an event after the position was folded, or the time has passed. @returns whether one was. */
  async waitPast(position: bigint, ms: number, signal?: AbortSignal): Promise<boolean> {
    await this.start();
    return this.#until(() => this.#position > position, ms, signal);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    for (const client of this.#clients) client.close();
    await this.#started?.catch(() => undefined);
    await this.#subscription?.stop();
  }

  #until(holds: () => boolean, ms: number, signal?: AbortSignal): Promise<boolean> {
    if (holds() || ms <= 0) return Promise.resolve(holds());
    return new Promise((resolve) => {
      const settle = () => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        signal?.removeEventListener('abort', settle);
        resolve(holds());
      };
      const look = () => {
        if (holds()) settle();
      };
      const timer = setTimeout(settle, ms);
      this.#watchers.add(look);
      signal?.addEventListener('abort', settle, { once: true });
    });
  }

  async #begin(): Promise<void> {
    const { fleet, log } = this.#o;
    // The states may be newer than this position, and never older: what they have already changes nothing again.
    const after = fleet.position;
    const fold = new LiveFold({ workers: fleet.workers.values(), catalogs: fleet.catalogs.values() });
    for (const id of fleet.workers.keys()) {
      const past = await this.#pastOf(id);
      fold.remember(
        id,
        [...past].reverse().filter((e) => upTo(e, after?.commit)),
      );
      for (const stream of [streams.pull(id), streams.operator(id)]) {
        await log.fold(stream, undefined, (state, recorded) => {
          fold.apply(recorded);
          return state;
        });
      }
    }
    for (const call of await this.#pastCalls()) fold.apply(call);
    this.#fold = fold;
    this.#position = after?.commit ?? 0n;
    this.#ring = new Ring(this.#position, REMEMBERED);
    await new Promise<void>((resolve, reject) => {
      this.#subscription = log.subscribeAll(
        LIVE_PREFIXES,
        {
          onEvent: (recorded) => {
            const { commit } = recorded.position;
            const changes = fold.apply(recorded);
            this.#position = commit;
            this.#pending.push(...this.#ring.add(commit, changes));
            if (this.#pending.length > 0) this.#soon();
            for (const look of [...this.#watchers]) look();
          },
          onCaughtUp: () => resolve(),
        },
        after ? { after } : {},
      );
      this.#subscription.ended.catch((error: unknown) => {
        const ended = error instanceof Error ? error : new Error(String(error));
        this.#o.logger.error({ err: ended }, 'what /live tells is no longer followed');
        // Clients come back and are served by a new fold, or find out why not.
        for (const client of this.#clients) client.end();
        this.#started = undefined;
        reject(ended);
      });
    });
  }

  /** Newest first. */
  async #pastOf(id: WorkerId): Promise<readonly Recorded<WorkerEvent>[]> {
    const { usual, most } = PAST_WORKER_EVENTS;
    const read = (count: number) => this.#o.log.readBackwards<WorkerEvent>(streams.worker(id), count);
    const past = await read(usual);
    const decided = past.filter(({ event }) => event.type === 'PlacementDecided').length;
    return decided >= PAST_DECISIONS || past.length < usual ? past : read(most);
  }

  /** Oldest first. */
  async #pastCalls(): Promise<readonly Recorded<CallEvent>[]> {
    const { fleet, log } = this.#o;
    const keys = [...fleet.models.keys(), UNRESOLVED];
    const past: Recorded<CallEvent>[] = [];
    while (keys.length > 0) {
      const read = keys
        .splice(0, READS_AT_ONCE)
        .map((key) => log.readBackwards<CallEvent>(streams.calls(key), PAST_CALL_EVENTS));
      past.push(...(await Promise.all(read)).flat());
    }
    return past.sort((a, b) => (a.position.commit < b.position.commit ? -1 : 1));
  }

  #snapshot(topic: LiveTopic): string {
    return snapshotFrame(topic, this.#position, this.#fold?.items(topic) ?? []);
  }

  /** At once after a quiet time, so that a single event is not late; else with what comes within the linger. */
  #soon(): void {
    const passedMs = performance.now() - this.#flushedAtMs;
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(0, LINGER_MS - passedMs));
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending.length === 0) return;
    this.#flushedAtMs = performance.now();
    const entries = this.#pending;
    this.#pending = [];
    const texts = new Map<string, string | undefined>();
    for (const client of this.#clients) {
      if (!texts.has(client.group)) {
        texts.set(client.group, changesFrame(entries, client.topics, this.#position));
      }
      const text = texts.get(client.group);
      if (text === undefined) client.passed(this.#position);
      else client.send(text, this.#position);
    }
  }
}

const upTo = ({ position }: Recorded<WorkerEvent>, commit: bigint | undefined): boolean =>
  commit === undefined || position.commit <= commit;
