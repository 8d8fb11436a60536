import type { OperatorEvent, Recorded } from '#domain/events/index.js';
import { workerId, type WorkerId } from '#domain/ids.js';
import { evolveOperator, initialOperator, type OperatorState } from '#domain/operator/operator.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { streams } from '#events/streams.js';

const PREFIX = streams.operator(workerId(''));

/** What operators asked of every worker, folded and kept warm. */
export class OperatorBook {
  readonly #log: Pick<EventLog, 'subscribeAll' | 'readForwards'>;
  readonly #states = new Map<WorkerId, OperatorState>();
  readonly #listeners = new Set<(state: OperatorState) => void>();
  #subscription: Subscription | undefined;

  constructor(log: Pick<EventLog, 'subscribeAll' | 'readForwards'>) {
    this.#log = log;
  }

  /** Listeners are first told of what is open once everything written so far is folded. */
  start(): void {
    let live = false;
    this.#subscription = this.#log.subscribeAll([PREFIX], {
      onEvent: (recorded) => {
        const state = this.#fold(recorded as Recorded<OperatorEvent>);
        if (live) this.#tell(state);
      },
      onCaughtUp: () => {
        if (live) return;
        live = true;
        for (const state of this.#states.values()) this.#tell(state);
      },
    });
    // Its end is that of the fleet's subscription too, which says so.
    this.#subscription.ended.catch(() => undefined);
  }

  async stop(): Promise<void> {
    await this.#subscription?.stop();
  }

  listen(listener: (state: OperatorState) => void): void {
    this.#listeners.add(listener);
  }

  of(id: WorkerId): OperatorState {
    return this.#states.get(id) ?? initialOperator(id);
  }

  /** Reads what is newer in the stream than its fold, without waiting for the subscription. */
  async catchUp(id: WorkerId): Promise<OperatorState> {
    const fromRevision = this.of(id).revision + 1;
    for await (const recorded of this.#log.readForwards<OperatorEvent>(streams.operator(id), {
      fromRevision,
    }))
      this.#fold(recorded);
    return this.of(id);
  }

  #fold(recorded: Recorded<OperatorEvent>): OperatorState {
    const id = workerId(recorded.stream.slice(PREFIX.length));
    const state = evolveOperator(this.of(id), recorded);
    this.#states.set(id, state);
    return state;
  }

  #tell(state: OperatorState): void {
    for (const listener of this.#listeners) listener(state);
  }
}
