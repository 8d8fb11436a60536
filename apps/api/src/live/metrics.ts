import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { CallEventData, CallOutcome } from '#domain/events/call-events.js';
import type { CallTimes } from '../recorder/call-record.js';

/** What is looked at when somebody asks, and counted nowhere. */
export interface Looks {
  readonly callsUnderWay: () => number;
  readonly callsWaiting: () => number;
  readonly residents: () => number;
  readonly eventsWaiting: () => number;
  readonly eventsLost: () => number;
}

const SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300];

/**
 * Figures for Prometheus. Few label sets: what could have thousands of values (models, sessions, keys) is in the views.
 * Calls are counted when their facts are written, not on their way.
 */
export class Metrics {
  readonly #registry = new Registry();
  /** Counted here at every call, and given to the registry when somebody asks: labels cost more than the counting. */
  readonly #calls = new Map<string, Map<CallOutcome, number>>();
  readonly #tokens = { prompt: 0, cached: 0, output: 0 };
  #bytesOut = 0;
  readonly #seconds = this.#histogram('berth_call_seconds', 'From a call to its end.');
  readonly #firstByte = this.#histogram(
    'berth_first_byte_seconds',
    'From a call to the first byte of an engine.',
  );

  constructor(looks: Looks) {
    this.#counter('berth_calls_total', 'Calls that have ended.', ['endpoint', 'outcome'], (counter) => {
      for (const [endpoint, outcomes] of this.#calls) {
        for (const [outcome, count] of outcomes) counter.inc({ endpoint, outcome }, count);
      }
    });
    this.#counter('berth_tokens_total', 'Tokens as engines counted them.', ['kind'], (counter) => {
      for (const [kind, count] of Object.entries(this.#tokens)) counter.inc({ kind }, count);
    });
    this.#counter('berth_answer_bytes_total', 'Bytes of answers.', [], (counter) =>
      counter.inc(this.#bytesOut),
    );
    this.#gauge('berth_calls_under_way', 'Calls that have not ended.', looks.callsUnderWay);
    this.#gauge('berth_calls_waiting', 'Calls in the queue.', looks.callsWaiting);
    this.#gauge('berth_residents', 'Engines with a model, in any phase.', looks.residents);
    this.#gauge(
      'berth_spool_events_waiting',
      'Call events that the log has not taken yet.',
      looks.eventsWaiting,
    );
    this.#gauge('berth_spool_events_lost', 'Call events that were lost since the start.', looks.eventsLost);
    this.#gauge('process_resident_memory_bytes', 'Memory of this process.', () => process.memoryUsage.rss());
  }

  ended(endpoint: string, data: CallEventData<'CallFinished'>, times: CallTimes): void {
    const { outcome, tokens, bytesOut } = data;
    this.#count(endpoint, outcome);
    this.#bytesOut += bytesOut;
    this.#tokens.prompt += tokens.prompt ?? 0;
    this.#tokens.cached += tokens.cached ?? 0;
    this.#tokens.output += tokens.output ?? 0;
    this.#seconds.observe(times.totalMs / 1000);
    if (times.firstByteMs !== undefined) this.#firstByte.observe(times.firstByteMs / 1000);
  }

  /** Before it was known whose call it is: the log has nothing of it. */
  refused(endpoint: string): void {
    this.#count(endpoint, 'refused');
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  render(): Promise<string> {
    return this.#registry.metrics();
  }

  #count(endpoint: string, outcome: CallOutcome): void {
    let outcomes = this.#calls.get(endpoint);
    if (!outcomes) {
      outcomes = new Map<CallOutcome, number>();
      this.#calls.set(endpoint, outcomes);
    }
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }

  #counter<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    fill: (counter: Counter<L>) => void,
  ): void {
    new Counter<L>({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        this.reset();
        fill(this);
      },
    });
  }

  #histogram(name: string, help: string): Histogram {
    return new Histogram({ name, help, buckets: SECONDS, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, look: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(look());
      },
    });
  }
}
