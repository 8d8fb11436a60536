import { loadavg } from 'node:os';
import { decide } from '#placement/decide.js';
import { predict } from '#placement/predict.js';
import { orderQueue } from '#placement/queue.js';
import { defaultSettings } from '#placement/setting-levels.js';
import { printMemory, printTimes } from './decide/figures.js';
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

const timed = (make: MakeInput) => ({ make, run: decide });

function bench(name: string, size: Size, rounds: number): void {
  console.log(name);
  for (const [mixName, mix] of MIXES) {
    const inputs = inputsOf(size, rounds, mix);
    const kinds = new Map<string, number>();
    for (const make of inputs) {
      const { kind } = decide(make());
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    printTimes(`  decide: ${mixName}`, inputs.map(timed));
    console.log(`    outcomes: ${[...kinds].map(([kind, n]) => `${kind} ${n}`).join(', ')}`);
    printMemory('  memory', inputs.map(timed));
  }
  const [make] = inputsOf(size, 1, MIXES[0]![1]);
  const first = make!();
  const view = { ...first, histories: first.otherHistories };
  const predictions = new Map(first.queue.map((t) => [t.callId, predict(t, view)]));
  const repeated = (times: number, run: () => unknown) =>
    Array.from({ length: times }, () => ({ make: () => undefined, run }));
  printTimes(
    '  predict the whole queue',
    repeated(50, () => first.queue.map((t) => predict(t, view))),
  );
  printTimes(
    '  order the queue',
    repeated(100, () => orderQueue(first.queue, predictions, NOW_MS, defaultSettings)),
  );
}

const rounds = Number(process.argv[2] ?? 2000);
const load = loadavg()
  .map((n) => n.toFixed(1))
  .join(', ');
console.log(`load averages of this machine: ${load}`);
bench(
  '8 devices, 64 residents, 500 models, 200 tickets',
  { devices: 8, residents: 64, models: 500, tickets: 200 },
  rounds,
);
bench(
  '8 devices, 256 residents, 2,000 models, 800 tickets',
  { devices: 8, residents: 256, models: 2000, tickets: 800 },
  Math.ceil(rounds / 4),
);
