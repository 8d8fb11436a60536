/**
 * Figures of the event log through the real client: the embedded node in a process of its own and, when EVENTSTORE_URL
 * is set, the same against that server. Run: npx tsc -b && node dist/test/bench/event-node.js [--seconds 4]
 */
import { EventStoreDBClient, jsonEvent, START, streamNameFilter, END } from '@eventstore/db-client';
import { fork, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '4' }, insecure: { type: 'boolean', default: false } },
});
const forMs = Number(values.seconds) * 1000;

interface Figure {
  readonly name: string;
  readonly value: string;
  readonly budget: string;
}

const payload = { note: 'x'.repeat(900), placed: true, figures: [1, 2, 3, 4] };
const make = () =>
  jsonEvent({
    type: 'Measured',
    data: { ...payload, at: Date.now() },
    metadata: { $correlationId: randomUUID(), by: 'bench' },
  });

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
const ms = (value: number): string => `${value.toFixed(2)} ms`;
const perSecond = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;

/** Appends with `inFlight` writers until the time is over. */
async function appends(
  client: EventStoreDBClient,
  inFlight: number,
  batch: number,
): Promise<{ perSecond: number; sorted: number[] }> {
  const latencies: number[] = [];
  const started = performance.now();
  const until = started + forMs;
  const run = randomUUID();
  const writer = async (index: number) => {
    const stream = `bench-${run}_${index}`;
    while (performance.now() < until) {
      const at = performance.now();
      await client.appendToStream(stream, Array.from({ length: batch }, make));
      latencies.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, index) => writer(index)));
  const seconds = (performance.now() - started) / 1000;
  return { perSecond: latencies.length / seconds, sorted: latencies.sort((a, b) => a - b) };
}

/** Reads the log from its start through a subscription until it has caught up. */
async function catchUp(client: EventStoreDBClient): Promise<number> {
  const subscription = client.subscribeToAll({ fromPosition: START });
  let events = 0;
  const started = performance.now();
  await new Promise<void>((resolve, reject) => {
    subscription.on('data', () => events++);
    subscription.on('caughtUp', () => resolve());
    subscription.on('error', reject);
  });
  const rate = events / ((performance.now() - started) / 1000);
  await subscription.unsubscribe();
  return rate;
}

/** From the append call to the handler of a live subscription, at 500 events a second. */
async function handlerLatency(client: EventStoreDBClient): Promise<number[]> {
  const sentAt = new Map<string, number>();
  const latencies: number[] = [];
  const subscription = client.subscribeToAll({
    fromPosition: END,
    filter: streamNameFilter({ prefixes: ['live-'] }),
  });
  await new Promise<void>((resolve, reject) => {
    subscription.on('caughtUp', () => resolve());
    subscription.on('error', reject);
  });
  subscription.on('data', ({ event }) => {
    const at = event && sentAt.get(event.id);
    if (at !== undefined) latencies.push(performance.now() - at);
  });
  const stream = `live-${randomUUID()}`;
  const started = performance.now();
  const appending: Promise<unknown>[] = [];
  for (let sent = 0; performance.now() - started < forMs;) {
    const due = ((performance.now() - started) / 1000) * 500;
    for (; sent < due; sent++) {
      const event = make();
      sentAt.set(event.id, performance.now());
      appending.push(client.appendToStream(stream, event));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(appending);
  while (latencies.length < sentAt.size) await new Promise((resolve) => setTimeout(resolve, 5));
  await subscription.unsubscribe();
  return latencies.sort((a, b) => a - b);
}

async function measure(url: string): Promise<Figure[]> {
  const client = EventStoreDBClient.connectionString(url);
  await appends(client, 16, 1);
  const single = await appends(client, 1, 1);
  const many = await appends(client, 128, 1);
  const batches = await appends(client, 16, 50);
  const live = await handlerLatency(client);
  const caughtUp = await catchUp(client);
  await Promise.race([client.dispose(), new Promise((resolve) => setTimeout(resolve, 1000))]);
  return [
    { name: 'append, 1 in flight, p50', value: ms(quantile(single.sorted, 0.5)), budget: '≤ 1 ms' },
    { name: 'append, 1 in flight, p99', value: ms(quantile(single.sorted, 0.99)), budget: '≤ 10 ms' },
    { name: 'appends at 128 in flight', value: perSecond(many.perSecond), budget: '≥ 8,000/s' },
    { name: 'events in batches of 50', value: perSecond(batches.perSecond * 50), budget: '≥ 20,000/s' },
    { name: 'catch-up events', value: perSecond(caughtUp), budget: '≥ 40,000/s' },
    { name: 'append → handler, p50', value: ms(quantile(live, 0.5)), budget: '≤ 2 ms' },
    { name: 'append → handler, p99', value: ms(quantile(live, 0.99)), budget: '' },
  ];
}

async function startNode(dataDir: string): Promise<ChildProcess> {
  const main = new URL('../../apps/event-node/src/main.js', import.meta.url);
  const args = ['--port', '0', '--data', dataDir, ...(values.insecure ? ['--insecure'] : [])];
  const child = fork(main, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await new Promise<void>((resolve, reject) => {
    child.once('message', (message: { berth: string; message?: string }) => {
      if (message.berth === 'ready') resolve();
      else reject(new Error(message.message));
    });
  });
  return child;
}

const dataDir = mkdtempSync(join(tmpdir(), 'bench-event-node-'));
const child = await startNode(dataDir);
const columns: Figure[][] = [];
try {
  columns.push(await measure(readFileSync(join(dataDir, 'connection'), 'utf8').trim()));
  const real = process.env.EVENTSTORE_URL;
  if (real) columns.push(await measure(real));
} finally {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
  rmSync(dataDir, { recursive: true, force: true });
}
const [embedded = [], external] = columns;
for (const [index, { name, value, budget }] of embedded.entries()) {
  const beside = external ? (external[index]?.value ?? '').padStart(14) : '';
  console.log(`${name.padEnd(28)}${value.padStart(14)}${beside}   ${budget}`);
}
process.exit(0);
