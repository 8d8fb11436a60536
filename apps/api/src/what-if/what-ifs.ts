import { Worker } from 'node:worker_threads';
import { BerthFailure, berthError } from '#domain/errors.js';
import type { WhatIfItem, WhatIfRequest } from '#domain/wire/index.js';
import { formatSeconds } from '#domain/units.js';
import type { WhatIfChange } from '#placement/what-if/change.js';
import { newId } from '#runtime/ids.js';
import { LastAsked } from '../replay/last-asked.js';
import type { WhatIfOrder, WhatIfWord } from './what-if-thread.js';

export interface WhatIfsOptions {
  readonly eventstoreUrl: string;
  readonly now: () => number;
  /** Longer than this it may not take. */
  readonly mostMs?: number;
  /** A thread of its own when left out. */
  readonly startThread?: (order: WhatIfOrder) => WhatIfThread;
}

/** What is used of a thread. */
export type WhatIfThread = Pick<Worker, 'terminate'> & {
  on(event: 'message', hear: (word: WhatIfWord) => void): unknown;
  on(event: 'error', hear: (error: Error) => void): unknown;
  on(event: 'exit', hear: () => void): unknown;
};

const DAY_MS = 86_400_000;
/** A longer time would be thinned out by the limit on calls anyhow. */
const LONGEST_MS = 31 * DAY_MS;
const MOST_MS = 900_000;
const MOST_HEAP_MB = 2048;

/** What-ifs, one at a time, each in a thread of its own so that no call waits for it. */
export class WhatIfs {
  readonly #o: WhatIfsOptions;
  readonly #items = new LastAsked<WhatIfItem>();
  #running:
    | {
        readonly id: string;
        readonly thread: WhatIfThread;
        readonly ended: Promise<void>;
        readonly over: () => void;
      }
    | undefined;

  constructor(options: WhatIfsOptions) {
    this.#o = options;
  }

  /** Newest first. */
  get list(): readonly WhatIfItem[] {
    return [...this.#items.values()].reverse();
  }

  of(id: string): WhatIfItem | undefined {
    return this.#items.get(id);
  }

  /** @throws BerthFailure for a time that cannot be, or while another one runs */
  start(request: WhatIfRequest): WhatIfItem {
    const { fromMs, toMs } = this.#timeOf(request);
    if (this.#running) {
      const message = `A what-if runs already; its answer is at GET /admin/what-if/${this.#running.id}. Ask again when it has ended.`;
      throw new BerthFailure(berthError('conflict', message));
    }
    const id = newId();
    const change = changeOf(request);
    const order: WhatIfOrder = {
      eventstoreUrl: this.#o.eventstoreUrl,
      fromMs,
      toMs,
      changes: Object.keys(change).length > 0 ? [change] : [],
      bound: request.bound ?? true,
    };
    const startedAt = new Date(this.#o.now()).toISOString();
    const item: WhatIfItem = { id, state: 'running', startedAt, request, step: 'starting' };
    this.#items.set(id, item);
    this.#run(id, order);
    return item;
  }

  /** The item of one that was started, once it is over. */
  async ended(id: string): Promise<Pick<WhatIfItem, 'report' | 'error'>> {
    if (this.#running?.id === id) await this.#running.ended;
    return this.#items.get(id) ?? { error: 'Nothing is known of it any more.' };
  }

  async stop(): Promise<void> {
    await this.#running?.thread.terminate();
  }

  #run(id: string, order: WhatIfOrder): void {
    const { mostMs = MOST_MS, startThread = threadOf } = this.#o;
    const thread = startThread(order);
    let over: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (over = resolve));
    const tooLong = setTimeout(
      () =>
        this.#end(
          id,
          failed(`It was not done within ${formatSeconds(mostMs / 1000)}; choose a shorter time.`),
        ),
      mostMs,
    );
    this.#running = {
      id,
      thread,
      ended,
      over: () => {
        clearTimeout(tooLong);
        over();
      },
    };
    thread.on('message', (word: WhatIfWord) => this.#hear(id, word));
    thread.on('error', (error) => this.#end(id, failed(`It ended by itself: ${error.message}`)));
    thread.on('exit', () => this.#end(id, failed('It was stopped before it was done.')));
  }

  #hear(id: string, word: WhatIfWord): void {
    if (word.kind === 'done') this.#end(id, { state: 'done', report: word.report });
    else if (word.kind === 'failed') this.#end(id, failed(word.message));
    else this.#step(id, word.step, word.fraction);
  }

  #step(id: string, step: string, fraction: number | undefined): void {
    const item = this.#items.get(id);
    if (item?.state !== 'running') return;
    const { fraction: _before, ...rest } = item;
    this.#items.set(id, { ...rest, step, ...(fraction === undefined ? {} : { fraction }) });
  }

  /** Whoever reads that it has ended may ask for the next one at once, also while its thread is still going. */
  #end(id: string, end: End): void {
    if (this.#running?.id !== id) return;
    const { thread, over } = this.#running;
    this.#running = undefined;
    const item = this.#items.get(id);
    if (item) {
      const { step: _step, fraction: _fraction, ...rest } = item;
      this.#items.set(id, { ...rest, ...end });
    }
    void thread.terminate();
    over();
  }

  #timeOf({ from, to }: WhatIfRequest): { readonly fromMs: number; readonly toMs: number } {
    const toMs = to === undefined ? this.#o.now() : Date.parse(to);
    const fromMs = from === undefined ? toMs - DAY_MS : Date.parse(from);
    if (!(fromMs < toMs))
      refuse(`The time must begin before it ends: from ${from ?? '24 hours before'} to ${to ?? 'now'}.`);
    if (toMs - fromMs > LONGEST_MS) refuse('A what-if looks at 31 days at most; choose a shorter time.');
    return { fromMs, toMs };
  }
}

type End = Pick<WhatIfItem, 'state' | 'report' | 'error'>;

const failed = (error: string): End => ({ state: 'failed', error });

const threadOf = (order: WhatIfOrder): WhatIfThread =>
  new Worker(new URL('./what-if-thread.js', import.meta.url), {
    workerData: order,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB },
  });

function refuse(message: string): never {
  throw new BerthFailure(berthError('invalid_request', message, { param: 'from' }));
}

function changeOf(request: WhatIfRequest): WhatIfChange {
  const { ramMaxBytes, vramMaxBytes, devices, moreWorkers, settings } = request;
  return {
    ...(ramMaxBytes === undefined ? {} : { ramMaxBytes }),
    ...(vramMaxBytes === undefined ? {} : { vramMaxBytes }),
    ...(devices && devices.length > 0 ? { devices } : {}),
    ...(moreWorkers ? { moreWorkers } : {}),
    ...(settings && Object.keys(settings).length > 0 ? { settings } : {}),
  };
}
