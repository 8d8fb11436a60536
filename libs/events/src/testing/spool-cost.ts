/**
 * Prints what recording call events costs at a steady rate, the appending to a real node included:
 * `node dist/libs/events/src/testing/spool-cost.js [eventsPerSecond] [seconds]`.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { openEventLog } from '../connect.js';
import { openSpool } from '../spool.js';
import { startEmbeddedNode } from './embedded-node.js';
import { SAMPLES } from './samples.js';

const rate = Number(process.argv[2] ?? 12_000);
const seconds = Number(process.argv[3] ?? 5);
const TICK_MS = 5;

const node = await startEmbeddedNode();
const dir = mkdtempSync(join(tmpdir(), 'berth-spool-cost-'));
const log = openEventLog({ url: node.url, by: 'bench', now: Date.now });
const spool = openSpool({ dir, log, now: Date.now });
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** A loop that makes the same events and drops them: what the measurement itself costs. */
async function run(
  take: (stream: string, n: number) => void,
): Promise<{ cpuShare: number; takeUs: number; made: number }> {
  const cpu = process.cpuUsage();
  const started = performance.now();
  let made = 0;
  let takingMs = 0;
  while (performance.now() - started < seconds * 1000) {
    const due = Math.floor(((performance.now() - started) / 1000) * rate);
    const before = performance.now();
    for (; made < due; made++) take(`calls-model-${made % 5}`, made);
    takingMs += performance.now() - before;
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  const used = process.cpuUsage(cpu);
  const wallMs = performance.now() - started;
  return { cpuShare: (used.user + used.system) / 1000 / wallMs, takeUs: (takingMs * 1000) / made, made };
}

const cause = { correlationId: randomUUID(), causationId: randomUUID() };
const event = (n: number) =>
  n % 2 === 0
    ? ({ type: 'CallStarted', data: { ...SAMPLES.CallStarted, promptBytes: n } } as const)
    : ({ type: 'CallFinished', data: { ...SAMPLES.CallFinished, bytesOut: n } } as const);
let kept = 0;
const idle = await run((_stream, n) => (kept += { id: randomUUID(), event: event(n), cause }.id.length));
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const cpuBefore = process.cpuUsage();
const busy = await run((stream, n) => {
  spool.record(stream, { id: randomUUID(), event: event(n), cause });
});
delay.disable();
const waiting = spool.waitingEvents;
const drainFrom = performance.now();
const drained = await spool.drain(60_000);
const cpuUsed = process.cpuUsage(cpuBefore);
const cpuUs = (cpuUsed.user + cpuUsed.system) / busy.made;
const systemUs = cpuUsed.system / busy.made;
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
say(`rate ${rate} events/s for ${seconds} s (${kept} characters of ids made)`);
say(`making the events alone: ${idle.takeUs.toFixed(2)} µs an event, ${percent(idle.cpuShare)} of a core`);
say(
  `recorded and appended:   ${busy.takeUs.toFixed(2)} µs an event in record(), ${percent(busy.cpuShare)} of a core (all threads of this process)`,
);
say(
  `event loop delay p50 ${(delay.percentile(50) / 1e6).toFixed(1)} ms, p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms`,
);
say(
  `CPU from record to acknowledgement: ${cpuUs.toFixed(1)} µs an event (${systemUs.toFixed(1)} of them in the system), so ${percent((cpuUs * rate) / 1e6)} of a core at this rate`,
);
say(
  `waiting at the end: ${waiting}; ${drained ? 'drained' : 'NOT drained'} in ${Math.round(performance.now() - drainFrom)} ms; lost ${spool.lost}`,
);
await spool.close();
await log.close();
await node.stop();
rmSync(dir, { recursive: true, force: true });
