import type { PlacementRefusedData } from '#domain/events/worker-events.js';
import type { WorkerId } from '#domain/ids.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';

const REPEAT_MS = 60_000;

/** A refusal repeated by a retrying client is counted, not written again. */
export class Refusals {
  readonly #written = new Map<string, { atMs: number; count: number }>();
  readonly #log: EventLog;
  readonly #logger: Logger;
  readonly #now: () => number;

  constructor(log: EventLog, logger: Logger, now: () => number) {
    this.#log = log;
    this.#logger = logger;
    this.#now = now;
  }

  /** Never awaited by a call: the answer does not depend on it. */
  record(worker: WorkerId, data: PlacementRefusedData, correlationId: string): void {
    const now = this.#now();
    const key = `${worker}|${data.modelKey}|${data.code}|${data.reason}`;
    const before = this.#written.get(key);
    if (before && now - before.atMs < REPEAT_MS) {
      before.count += 1;
      return;
    }
    for (const [old, { atMs }] of this.#written) if (now - atMs > REPEAT_MS * 10) this.#written.delete(old);
    this.#written.set(key, { atMs: now, count: 0 });
    const count = data.count + (before?.count ?? 0);
    void this.#log
      .append(
        streams.worker(worker),
        [
          {
            id: derivedId('PlacementRefused', data.decisionId),
            event: { type: 'PlacementRefused', data: { ...data, count } },
            cause: { correlationId, causationId: correlationId },
          },
        ],
        'any',
      )
      .then((outcome) => {
        if (outcome.ok) return;
        this.#written.delete(key);
        this.#logger.warn({ code: data.code, why: outcome.error.kind }, 'a refusal could not be recorded');
      });
  }
}
