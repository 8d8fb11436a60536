import { randomUUID } from 'node:crypto';
import type { BerthEvent, BerthEventType } from '#domain/events/index.js';
import { SAMPLES } from '#events/testing/samples.js';

/** One append: events of one stream. */
export interface Part {
  readonly stream: string;
  readonly events: readonly { readonly id: string; readonly event: BerthEvent; readonly at: string }[];
}

const WORKER = '01979d3e-0000-7000-8000-000000000001';
const CALLS_PER_RESIDENT = 40;

/** What a busy Berth writes, with events as large as real ones: lives of residents, and most of all calls on them. */
export class DrawnLoad {
  readonly #models: readonly string[];
  readonly #clock = { ms: Date.UTC(2026, 0, 1) };
  #life = 0;

  constructor(models = 20) {
    this.#models = Array.from({ length: models }, (_, n) => `owner/model-${n}`);
  }

  /** A resident's life: decided, loaded, measured, called, evicted. */
  life(): Part[] {
    const modelKey = this.#models[this.#life++ % this.#models.length] ?? 'owner/model';
    const decisionId = randomUUID();
    const residentId = randomUUID();
    const ids = { modelKey, decisionId, residentId, callId: randomUUID() };
    const worker = `worker-${WORKER}`;
    const history = `history-${WORKER}~${modelKey}`;
    return [
      this.#part(worker, ['PlacementDecided', { ...ids, victims: [] }]),
      this.#part(worker, ['LoadStarted', ids], ['ResidentReady', ids]),
      this.#part(history, ['LoadMeasured', ids]),
      ...Array.from({ length: CALLS_PER_RESIDENT / 10 }, () => this.calls(ids, 10)),
      this.#part(
        worker,
        ['EvictionStarted', { ...ids, reason: 'idle' }],
        ['ResidentEvicted', { ...ids, reason: 'idle' }],
      ),
    ];
  }

  /** Starts and ends of calls, as the spool of one api appends them. */
  calls(ids: { readonly modelKey: string; readonly residentId?: string }, count: number): Part {
    const pairs = Array.from({ length: count }, () => ({ ...ids, callId: randomUUID() }));
    return this.#part(
      `calls-${ids.modelKey}`,
      ...pairs.map((data): [BerthEventType, object] => ['CallStarted', data]),
      ...pairs.map((data): [BerthEventType, object] => ['CallFinished', data]),
    );
  }

  #part(stream: string, ...events: readonly [BerthEventType, object][]): Part {
    return {
      stream,
      events: events.map(([type, changes]) => {
        const at = new Date((this.#clock.ms += 250)).toISOString();
        const sample = SAMPLES[type] as Readonly<Record<string, unknown>>;
        const data = Object.fromEntries(
          Object.entries({ ...sample, ...changes }).filter(([name]) => name in sample),
        );
        if ('receivedAt' in data) data['receivedAt'] = at;
        if ('stamps' in data)
          data['stamps'] = { ...(data['stamps'] as object), receivedAt: at, finishedAt: at };
        return { id: randomUUID(), event: { type, data } as unknown as BerthEvent, at };
      }),
    };
  }
}
