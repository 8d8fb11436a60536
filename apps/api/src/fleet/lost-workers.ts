import type { WorkerEvent } from '#domain/events/index.js';
import type { WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { AgentSessions } from '../agents/sessions.js';
import type { Fleet } from './fleet.js';

export interface LostWorkersOptions {
  readonly fleet: Fleet;
  readonly sessions: AgentSessions;
  readonly log: Pick<EventLog, 'append'>;
  readonly logger: Logger;
  readonly now: () => number;
}

/** Longer than an agent takes to start again, and than calls wait for one. */
export const LOST_AFTER_MS = 30_000;
const EVERY_MS = 5000;

/**
 * Says in a worker's stream that its agent has not been heard of for a while, and that it is back. What runs there goes on
 * serving: lost is who places nothing any more, and of whom nothing is known.
 *
 * Every api has a line of its own, so one may miss an agent that another one hears: then the other says at once that it
 * is back, and who missed it says it once for each time that its line was lost.
 */
export class LostWorkers {
  readonly #o: LostWorkersOptions;
  readonly #toldAt = new Map<WorkerId, number>();
  readonly #actedAt = new Map<WorkerId, number>();
  readonly #writing = new Set<WorkerId>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  /** To be made before the fleet is folded: it takes in when each agent wrote last. */
  constructor(options: LostWorkersOptions) {
    this.#o = options;
    const { fleet, sessions } = options;
    fleet.listen({
      onWorkerEvent: ({ event, metadata }, { workerId: id }) => {
        if (metadata.by.startsWith('agent:')) this.#actedAt.set(id, Date.parse(metadata.at));
        if (event.type === 'WorkerLost') this.#look(id);
      },
    });
    sessions.listen({
      onConnected: (id) => this.#look(id),
    });
  }

  start(): void {
    this.#timer = setInterval(() => this.check(), EVERY_MS);
    this.#timer.unref();
    this.check();
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#timer);
  }

  /** Looks at every worker. */
  check(): void {
    for (const id of this.#o.fleet.workers.keys()) this.#look(id);
  }

  #look(id: WorkerId): void {
    const worker = this.#o.fleet.worker(id);
    if (this.#stopped || this.#timer === undefined || !worker?.registered || this.#writing.has(id)) return;
    const event = this.#eventFor(worker);
    if (!event) return;
    this.#writing.add(id);
    void this.#append(worker, event).finally(() => {
      this.#writing.delete(id);
      // It may have come or gone while this was written.
      if (this.#o.fleet.worker(id)?.revision !== worker.revision) this.#look(id);
    });
  }

  #eventFor({ workerId: id, lost }: WorkerState): WorkerEvent | undefined {
    const { sessions, now } = this.#o;
    const awayAtMs = sessions.awaySinceMs(id);
    if (awayAtMs === undefined) {
      const bootId = sessions.bootIdOf(id);
      return lost && bootId !== undefined ? { type: 'WorkerReturned', data: { bootId } } : undefined;
    }
    if (lost || now() - awayAtMs < LOST_AFTER_MS || this.#toldAt.get(id) === awayAtMs) return undefined;
    // One that writes is there, though its line is not: it may be starting, or busy.
    const seenAtMs = Math.max(sessions.lastHeardMs(id) ?? 0, this.#actedAt.get(id) ?? 0);
    if (now() - seenAtMs < LOST_AFTER_MS) return undefined;
    return { type: 'WorkerLost', data: { lastSeenAt: new Date(seenAtMs).toISOString() } };
  }

  /** At the revision that it was found from: of several apis one writes it, and whoever wrote first is read first. */
  async #append({ workerId: id, name, revision }: WorkerState, event: WorkerEvent): Promise<void> {
    const { fleet, sessions, log, logger } = this.#o;
    const awayAtMs = sessions.awaySinceMs(id);
    const eventId = derivedId(event.type, id, String(revision));
    try {
      const outcome = await log.append(
        streams.worker(id),
        [{ id: eventId, event, cause: { correlationId: eventId, causationId: eventId } }],
        revision,
      );
      if (outcome.ok && event.type === 'WorkerLost') {
        if (awayAtMs !== undefined) this.#toldAt.set(id, awayAtMs);
        logger.warn(
          { worker: name, workerId: id, ...event.data },
          'a worker is lost: its agent is not heard of',
        );
      }
      if (outcome.ok || outcome.error.kind === 'conflict') await fleet.catchUpWorker(id);
      // Else the log is away; it is looked at again.
    } catch (error) {
      logger.warn({ err: error, workerId: id }, 'whether a worker is lost could not be written');
    }
  }
}
