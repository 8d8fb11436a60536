import { loadavg } from 'node:os';
import type { PlacementInput } from '#placement/contract.js';
import { decide } from '#placement/decide.js';
import { predict } from '#placement/predict.js';
import { orderQueue } from '#placement/queue.js';
import { defaultSettings } from '#placement/setting-levels.js';
import { memoryOf, percentile, type Timed, timesOf } from './decide/figures.js';
import { inputsOf, type MakeInput, type Mix, NOW_MS, type Size } from './decide/inputs.js';

/**
 * Times `decide` and `orderQueue` on a full machine: 8 devices, 64 residents, 500 models, 200 tickets, then four times
 * as many of each but the devices. Usage: `node --expose-gc dist/test/bench/decide.js [rounds]`. The budget is p99 ≤ 1 ms
 * for the first.
 */
const MIXES: readonly (readonly [string, Mix])[] = [
  ['the state as it was', { busyPercent: 25, anyPlace: false, afterEvent: false }],
  ['a new state each time', { busyPercent: 25, anyPlace: false, afterEvent: true }],
  ['60 % busy, anywhere in the queue', { busyPercent: 60, anyPlace: true, afterEvent: true }],
];

/** What DESIGN.md allows a decision of the first size. */
const BUDGET_MS = 1;

const timed = (make: MakeInput): Timed<PlacementInput> => ({ make, run: decide });

async function bench(name: string, size: Size, rounds: number, budgetMs?: number): Promise<void> {
  console.log(name);
  for (const [mixName, mix] of MIXES) {
    const list = inputsOf(size, rounds, mix).map(timed);
    await print(`decide: ${mixName}`, list, budgetMs);
    const kinds = new Map<string, number>();
    for (const { make } of list) {
      const { kind } = decide(make());
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const memory = memoryOf(list);
    const allocated = memory
      ? `allocates p50 ${kib(percentile(memory.allocatedKiB, 0.5))}, p99 ${kib(percentile(memory.allocatedKiB, 0.99))}, keeps ${kib(memory.keptKiB)}`
      : 'memory not measured: run with node --expose-gc';
    console.log(`    ${allocated}; ${[...kinds].map(([kind, n]) => `${n} ${kind}`).join(', ')}`);
  }
  const [make] = inputsOf(size, 1, MIXES[0]![1]);
  const first = make!();
  const view = { ...first, histories: first.otherHistories };
  const predictions = new Map(first.queue.map((t) => [t.callId, predict(t, view)]));
  const repeated = (times: number, run: () => unknown) =>
    Array.from({ length: times }, () => ({ make: () => undefined, run }));
  await print(
    'predict the whole queue',
    repeated(200, () => first.queue.map((t) => predict(t, view))),
  );
  await print(
    'order the queue',
    repeated(200, () => orderQueue(first.queue, predictions, NOW_MS, defaultSettings)),
  );
}

async function print<T>(label: string, list: readonly Timed<T>[], budgetMs?: number): Promise<void> {
  const { wallMs, cpuMs, gcShare } = await timesOf(list);
  const of = (times: readonly number[]): string =>
    [0.5, 0.95, 0.99].map((at) => `p${at * 100} ${percentile(times, at).toFixed(2)}`).join(' ') + ' ms';
  const budget = budgetMs === undefined ? '' : `   p99 ≤ ${budgetMs} ms`;
  console.log(
    `  ${label.padEnd(40)} wall ${of(wallMs)}   CPU ${of(cpuMs)}   collector ${(gcShare * 100).toFixed(0)} %${budget}`,
  );
}

const kib = (n: number): string => `${n.toFixed(n < 10 ? 1 : 0)} KiB`;

const rounds = Number(process.argv[2] ?? 2000);
const load = loadavg()
  .map((n) => n.toFixed(1))
  .join(', ');
console.log(`load averages of this machine: ${load}`);
await bench(
  '8 devices, 64 residents, 500 models, 200 tickets',
  { devices: 8, residents: 64, models: 500, tickets: 200 },
  rounds,
  BUDGET_MS,
);
await bench(
  '8 devices, 256 residents, 2,000 models, 800 tickets',
  { devices: 8, residents: 256, models: 2000, tickets: 800 },
  Math.ceil(rounds / 4),
);
