import type { ReadText } from './read-text.js';
import { readText } from './read-text.js';

/** Time that each processor has worked so far, and all of its time, in clock ticks. */
export type TicksByCpu = ReadonlyMap<number, { readonly busy: number; readonly total: number }>;

/** The lines of /proc/stat by processor; empty where there is none. Waiting for a disk is no work. */
export function readTicksByCpu(read: ReadText = readText): TicksByCpu {
  const ticks = new Map<number, { readonly busy: number; readonly total: number }>();
  for (const [, cpu = '', rest = ''] of (read('/proc/stat') ?? '').matchAll(/^cpu(\d+) ([\d ]+)$/gm)) {
    // Guests are in user and nice already.
    const fields = rest.trim().split(/ +/).map(Number).slice(0, 8);
    if (fields.length < 5) continue;
    const total = fields.reduce((sum, n) => sum + n, 0);
    ticks.set(Number(cpu), { busy: total - (fields[3] ?? 0) - (fields[4] ?? 0), total });
  }
  return ticks;
}

/** What one of our engines worked since the last reading, and the processors that it is bound to; absent: any. */
export interface OurWork {
  readonly ticks: number;
  readonly cpus?: readonly number[];
}

const READINGS = 5;
const BUSY_FROM = 0.5;
/** One that is busy stays so until there is clearly less: what wobbles around a half is not told again and again. */
const BUSY_UNTIL = 0.35;

/** Processors on which other programs work for over half of the time, over the last readings. */
export class BusyCores {
  #before: TicksByCpu | undefined;
  readonly #last: ReadonlyMap<number, { readonly foreign: number; readonly total: number }>[] = [];
  #busy: ReadonlySet<number> = new Set();

  /** @returns those that are busy now, rising; undefined until enough was read. */
  read(now: TicksByCpu, ours: readonly OurWork[]): readonly number[] | undefined {
    const before = this.#before;
    this.#before = now;
    if (!before) return undefined;
    const all = [...now.keys()];
    const own = new Map<number, number>();
    for (const { ticks, cpus } of ours) {
      const on = cpus?.filter((cpu) => now.has(cpu)) ?? all;
      for (const cpu of on) own.set(cpu, (own.get(cpu) ?? 0) + ticks / on.length);
    }
    this.#last.push(
      new Map(
        all.map((cpu) => {
          const [then, here] = [before.get(cpu), now.get(cpu)];
          const worked = Math.max(0, (here?.busy ?? 0) - (then?.busy ?? here?.busy ?? 0));
          const total = Math.max(0, (here?.total ?? 0) - (then?.total ?? here?.total ?? 0));
          return [cpu, { foreign: Math.max(0, worked - (own.get(cpu) ?? 0)), total }];
        }),
      ),
    );
    if (this.#last.length > READINGS) this.#last.shift();
    if (this.#last.length < READINGS) return undefined;
    this.#busy = new Set(
      all.filter((cpu) => this.#share(cpu) > (this.#busy.has(cpu) ? BUSY_UNTIL : BUSY_FROM)),
    );
    return [...this.#busy].sort((a, b) => a - b);
  }

  #share(cpu: number): number {
    let foreign = 0;
    let total = 0;
    for (const reading of this.#last) {
      foreign += reading.get(cpu)?.foreign ?? 0;
      total += reading.get(cpu)?.total ?? 0;
    }
    return total === 0 ? 0 : foreign / total;
  }
}
