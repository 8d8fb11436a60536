/**
 * How long a long log takes to open, and what memory the node needs for it: builds a log with direct writes to the
 * store, starts the node over it, and prints both, beside the same of an empty log.
 *
 *   npx tsc -b && node dist/test/bench/event-node-open.js [--events 5000000] [--keep DIR]
 */
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { buildLog } from './event-node/build-log.js';
import { startMeasuredNode } from './event-node/node-process.js';
import { plainClient } from './event-node/subjects.js';

const { values } = parseArgs({
  options: { events: { type: 'string', default: '5000000' }, keep: { type: 'string' } },
});
const events = Number(values.events);
const mib = (bytes: number | undefined): string =>
  bytes === undefined ? '-' : `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
const row = (what: string, ...cells: readonly string[]) =>
  console.log(`${what.padEnd(44)}${cells.map((cell) => cell.padStart(18)).join('')}`);

/** Enough to see whether memory follows what is read. */
const MOST_READ = 300_000;

interface Opened {
  readonly seconds: number;
  readonly atRest: number | undefined;
  readonly afterAppends: number | undefined;
  readonly afterReading: number | undefined;
  readonly afterReadingAgain: number | undefined;
  readonly read: number;
}

/** From the start of the process until it serves, and its memory at rest, after appends, and after reading. */
async function open(dataDir: string): Promise<Opened> {
  const started = performance.now();
  const node = await startMeasuredNode({ dataDir });
  const seconds = (performance.now() - started) / 1000;
  const atRest = node.residentBytes();
  const subject = plainClient(node.url);
  for (let i = 0; i < 200; i++) await subject.append('opened-1', [crypto.randomUUID()]);
  const afterAppends = node.residentBytes();
  const read = await subject.catchUp(MOST_READ);
  const afterReading = node.residentBytes();
  for (let i = 0; i < 2; i++) await subject.catchUp(MOST_READ);
  const afterReadingAgain = node.residentBytes();
  await subject.close();
  await node.stop();
  return { seconds, atRest, afterAppends, afterReading, afterReadingAgain, read };
}

const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'bench-open-'));
const [short, long] = [join(folder, 'short'), join(folder, 'long')];
try {
  if (!existsSync(join(long, 'log.db'))) {
    // A line that overwrites itself is for a terminal.
    const live = process.stderr.isTTY;
    buildLog(long, events, (done, perSecond) => {
      if (live) process.stderr.write(`\rbuilding: ${done.toLocaleString('en')} events, ${perSecond}/s `);
    });
    if (live) process.stderr.write('\n');
  }
  const small = await open(short);
  // The first start makes the certificates; what counts is a start over what is there.
  await open(long);
  const again = await open(short);
  const large = await open(long);
  row('', 'empty', `  ${events.toLocaleString('en')} events`);
  row('file', '', mib(statSync(join(long, 'log.db')).size));
  row(
    'process start until it serves (log ≤ 2 s)',
    `${again.seconds.toFixed(2)} s`,
    `${large.seconds.toFixed(2)} s`,
  );
  row('memory at rest', mib(small.atRest), mib(large.atRest));
  row('memory after 200 appends', mib(small.afterAppends), mib(large.afterAppends));
  row('memory after reading', mib(small.afterReading), mib(large.afterReading));
  row('memory after reading twice more', mib(small.afterReadingAgain), mib(large.afterReadingAgain));
  row('events read', small.read.toLocaleString('en'), large.read.toLocaleString('en'));
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
