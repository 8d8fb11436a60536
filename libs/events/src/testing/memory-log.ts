import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import type {
  AllSubscriber,
  AppendFailure,
  AppendOutcome,
  EventLog,
  ExpectedRevision,
  NewEvent,
  StreamSubscriber,
  Subscription,
} from '../event-log.js';
import { encodeEvent, refusalOf } from '../codec.js';
import { CURRENT_VERSIONS } from '../upcast.js';

export interface MemoryLogOptions {
  readonly logId?: string;
  readonly by?: string;
  readonly now?: () => number;
}

/**
 * A log in memory that keeps to the port: expected revisions, idempotent ids, one strict order. For tests of what
 * decides and folds; what depends on a connection is tested against the embedded node.
 */
export class MemoryLog implements EventLog {
  readonly all: Recorded<BerthEvent>[] = [];
  /** What an append answers instead of writing, and whether it writes all the same (an answer that was lost). */
  fault: ((stream: string) => { failure: AppendFailure; written: boolean } | undefined) | undefined;
  readonly #logId: string;
  readonly #by: string;
  readonly #now: () => number;
  readonly #followers = new Set<() => void>();

  constructor(options: MemoryLogOptions = {}) {
    this.#logId = options.logId ?? '00000000-0000-4000-8000-000000000001';
    this.#by = options.by ?? 'test';
    this.#now = options.now ?? (() => Date.UTC(2026, 0, 1));
  }

  stream(name: string): Recorded<BerthEvent>[] {
    return this.all.filter((e) => e.stream === name);
  }

  identity(): Promise<string> {
    return Promise.resolve(this.#logId);
  }

  append<E extends BerthEvent>(
    stream: string,
    events: readonly NewEvent<E>[],
    expected: ExpectedRevision,
  ): Promise<AppendOutcome> {
    const fault = this.fault?.(stream);
    if (fault && !fault.written) return Promise.resolve({ ok: false, error: fault.failure });
    const outcome = this.#write(stream, events, expected);
    return Promise.resolve(fault ? { ok: false, error: fault.failure } : outcome);
  }

  async *readForwards<E extends BerthEvent>(
    stream: string,
    options: { readonly fromRevision?: number; readonly maxCount?: number } = {},
  ): AsyncGenerator<Recorded<E>, void, undefined> {
    const from = options.fromRevision ?? 0;
    await Promise.resolve();
    yield* this.stream(stream).slice(from, from + (options.maxCount ?? Infinity)) as Recorded<E>[];
  }

  readBackwards<E extends BerthEvent>(stream: string, maxCount: number): Promise<readonly Recorded<E>[]> {
    return Promise.resolve(this.stream(stream).reverse().slice(0, maxCount) as Recorded<E>[]);
  }

  async fold<S, E extends BerthEvent>(
    stream: string,
    initial: S,
    evolve: (state: S, recorded: Recorded<E>) => S,
  ): Promise<S> {
    let state = initial;
    for await (const recorded of this.readForwards<E>(stream)) state = evolve(state, recorded);
    return state;
  }

  subscribe<E extends BerthEvent>(
    stream: string,
    subscriber: StreamSubscriber<E>,
    options: { readonly afterRevision?: number } = {},
  ): Subscription {
    const after = options.afterRevision ?? -1;
    return this.#follow((e) => e.stream === stream && e.revision > after, subscriber);
  }

  subscribeAll(
    prefixes: readonly string[],
    subscriber: AllSubscriber,
    options: { readonly after?: LogPosition } = {},
  ): Subscription {
    const after = options.after?.commit ?? -1n;
    return this.#follow(
      (e) =>
        e.position.commit > after &&
        (prefixes.length === 0 || prefixes.some((prefix) => e.stream.startsWith(prefix))),
      subscriber,
    );
  }

  /** Nothing is forgotten here. */
  keepFor(): Promise<AppendOutcome> {
    return Promise.resolve({ ok: true, value: { revision: 0, position: { commit: 0n, prepare: 0n } } });
  }

  endPosition(): Promise<LogPosition | undefined> {
    return Promise.resolve(this.all.at(-1)?.position);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #write(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): AppendOutcome {
    const encoded = events.map((event) => encodeEvent(event, { by: this.#by, now: this.#now }));
    const refusal = refusalOf(encoded);
    if (refusal !== undefined) return { ok: false, error: { kind: 'refused', message: refusal } };
    const there = this.stream(stream);
    const ids = events.map((e) => e.id);
    const last = there.length - 1;
    const wanted = expected === 'no-stream' ? -1 : expected;
    const from = wanted === 'any' ? there.findIndex((e) => e.id === ids[0]) : wanted + 1;
    const known = from >= 0 ? there.slice(from, from + ids.length) : [];
    if (known.length === ids.length && known.every((e, i) => e.id === ids[i])) {
      const end = known.at(-1);
      if (end) return { ok: true, value: { revision: end.revision, position: end.position } };
    }
    if (wanted !== 'any' && wanted !== last) return { ok: false, error: { kind: 'conflict', actual: last } };
    let revision = last;
    for (const item of events) {
      const commit = (this.all.at(-1)?.position.commit ?? 0n) + 137n;
      this.all.push({
        event: JSON.parse(JSON.stringify(item.event)) as BerthEvent,
        id: item.id,
        stream,
        revision: ++revision,
        position: { commit, prepare: commit },
        metadata: {
          $correlationId: item.cause.correlationId,
          $causationId: item.cause.causationId,
          at: item.at ?? new Date(this.#now()).toISOString(),
          by: this.#by,
          schemaVersion: CURRENT_VERSIONS[item.event.type],
        },
      });
    }
    for (const wake of this.#followers) wake();
    const position = this.all.at(-1)?.position ?? { commit: 0n, prepare: 0n };
    return { ok: true, value: { revision, position } };
  }

  #follow(wanted: (e: Recorded<BerthEvent>) => boolean, subscriber: AllSubscriber): Subscription {
    let stopped = false;
    let next = 0;
    let wake: () => void = () => undefined;
    const run = async () => {
      subscriber.onConnected?.(true);
      while (!stopped) {
        const recorded = this.all[next];
        if (recorded) {
          next++;
          if (wanted(recorded)) await subscriber.onEvent(recorded);
          continue;
        }
        await subscriber.onCaughtUp?.();
        if (next < this.all.length) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
          this.#followers.add(wake);
          if (stopped) resolve();
        });
        this.#followers.delete(wake);
      }
    };
    const ended = run();
    ended.catch(() => undefined);
    return {
      ended,
      stop: async () => {
        stopped = true;
        wake();
        await ended.catch(() => undefined);
      },
    };
  }
}
