import { BerthFailure, berthError } from '#domain/errors.js';
import type { ReplayDifference, ReplayItem, ReplayLine, ReplayMode } from '#domain/wire/index.js';
import { newId } from '#runtime/ids.js';
import { LastAsked } from './last-asked.js';
import type { ReplayRun, StartReplay } from './replay-process.js';

export interface ReplaysOptions {
  readonly start: StartReplay;
  readonly now: () => number;
}

/** Differences that are told row by row; more are counted, and `berth replay --verify --json` gives every one. */
export const MOST_DIFFERENCES = 500;

interface Kept {
  item: Omit<ReplayItem, 'differences'>;
  readonly differences: ReplayDifference[];
}

/** Replays that were asked of this api, one at a time. */
export class Replays {
  readonly #o: ReplaysOptions;
  readonly #kept = new LastAsked<Kept>();
  #running: { readonly id: string; readonly run: ReplayRun } | undefined;

  constructor(options: ReplaysOptions) {
    this.#o = options;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Newest first, without their differences. */
  get list(): readonly ReplayItem[] {
    return [...this.#kept.values()].map(({ item }) => item).reverse();
  }

  of(id: string): ReplayItem | undefined {
    const kept = this.#kept.get(id);
    return kept && { ...kept.item, differences: [...kept.differences] };
  }

  /** @throws BerthFailure while another one runs. */
  start(mode: ReplayMode): ReplayItem {
    if (this.#running) {
      const message = `A replay runs already; how far it is stands at GET /admin/replay/${this.#running.id}. Ask again when it has ended.`;
      throw new BerthFailure(berthError('conflict', message));
    }
    const id = newId();
    const progress = { events: 0, share: 0, perSecond: 0 };
    const startedAt = this.#time();
    const kept: Kept = {
      item: { id, mode, state: 'running', startedAt, progress, differencesFound: 0 },
      differences: [],
    };
    this.#kept.set(id, kept);
    const run = this.#o.start(mode, {
      onLine: (line) => hear(kept, line),
      onEnd: (message) => this.#ended(kept, message),
    });
    this.#running = { id, run };
    return kept.item;
  }

  stop(): void {
    this.#running?.run.stop();
  }

  #ended(kept: Kept, message: string | undefined): void {
    if (kept.item.state !== 'running') return;
    this.#running = undefined;
    const { step: _step, ...item } = kept.item;
    kept.item = {
      ...item,
      endedAt: this.#time(),
      ...(message === undefined ? { state: 'done' } : { state: 'failed', error: message }),
    };
  }

  #time(): string {
    return new Date(this.#o.now()).toISOString();
  }
}

function hear(kept: Kept, line: ReplayLine): void {
  const { item } = kept;
  if (line.difference) {
    if (kept.differences.length < MOST_DIFFERENCES) kept.differences.push(line.difference);
    kept.item = { ...item, differencesFound: item.differencesFound + 1 };
  } else if (line.step) {
    kept.item = { ...item, step: line.step };
  } else if (line.progress) {
    kept.item = { ...item, progress: line.progress };
  } else if (line.verified) {
    const { rows, position, differences, events } = line.verified;
    kept.item = { ...item, rows, position, differencesFound: differences, progress: whole(item, events) };
  } else if (line.replayed) {
    const { position, setAside, events } = line.replayed;
    kept.item = { ...item, position, setAside, progress: whole(item, events) };
  }
}

/** A short one ends before it tells how far it is. */
const whole = ({ progress }: Pick<ReplayItem, 'progress'>, events: number): ReplayItem['progress'] => ({
  events,
  share: 1,
  perSecond: progress.perSecond,
});
