import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { quantile } from '../measures.js';
import type { MeasuredNode } from './node-process.js';
import { newIds, type Subject } from './subjects.js';

export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly budget: string;
  /** Processor time for one event, in microseconds, of this process and of the node's. */
  readonly clientMicros?: number | undefined;
  readonly nodeMicros?: number | undefined;
}

const ms = (value: number): string => `${value.toFixed(2)} ms`;
const perSecond = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;

interface Run {
  readonly seconds: number;
  readonly events: number;
  readonly clientMicros: number;
  readonly nodeMicros: number | undefined;
}

/** Runs `work`, which answers how many events it moved, and counts the time of both processes. */
async function timed(node: MeasuredNode, work: () => Promise<number>): Promise<Run> {
  const node0 = node.cpuMicros();
  const cpu0 = process.cpuUsage();
  const started = performance.now();
  const events = await work();
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu0);
  const node1 = node.cpuMicros();
  return {
    seconds,
    events,
    clientMicros: (user + system) / events,
    nodeMicros: node0 === undefined || node1 === undefined ? undefined : (node1 - node0) / events,
  };
}

const cost = ({ clientMicros, nodeMicros }: Run) => ({ clientMicros, nodeMicros });

/** Appends with `inFlight` writers, each to a stream of its own, until the time is over. */
async function appends(
  subject: Subject,
  forMs: number,
  inFlight: number,
  batch: number,
  latencies: number[],
) {
  const until = performance.now() + forMs;
  const run = randomUUID();
  let events = 0;
  const writer = async (index: number) => {
    while (performance.now() < until) {
      const at = performance.now();
      await subject.append(`bench-${run}_${index}`, newIds(batch));
      latencies.push(performance.now() - at);
      events += batch;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, index) => writer(index)));
  return events;
}

/** From the append call to the handler of a live subscription, at 500 events a second. */
async function handlerLatency(subject: Subject, forMs: number): Promise<number[]> {
  const sentAt = new Map<string, number>();
  const latencies: number[] = [];
  const stop = await subject.follow('live-', (id) => {
    const at = sentAt.get(id);
    if (at !== undefined) latencies.push(performance.now() - at);
  });
  const stream = `live-${randomUUID()}`;
  const started = performance.now();
  const appending: Promise<unknown>[] = [];
  for (let sent = 0; performance.now() - started < forMs;) {
    const due = ((performance.now() - started) / 1000) * 500;
    for (; sent < due; sent++) {
      const ids = newIds(1);
      sentAt.set(ids[0] ?? '', performance.now());
      appending.push(subject.append(stream, ids));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(appending);
  const until = performance.now() + 30_000;
  while (latencies.length < sentAt.size) {
    if (performance.now() > until)
      throw new Error(`the subscription got ${latencies.length} of ${sentAt.size}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await stop();
  return latencies.sort((a, b) => a - b);
}

export interface MeasureOptions {
  readonly forMs: number;
  /** Only figures whose name holds this. */
  readonly only?: string | undefined;
  /** A server that follows no live events. */
  readonly appendsOnly?: boolean;
}

export async function measure(
  subject: Subject,
  node: MeasuredNode,
  { forMs, only = '', appendsOnly = false }: MeasureOptions,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  const wants = (name: string) => name.includes(only);
  // Both processes compile what is hot before anything counts.
  await appends(subject, Math.min(2000, forMs), 16, 1, []);
  const single = 'append, 1 in flight';
  if (wants(single)) {
    const latencies: number[] = [];
    const run = await timed(node, () => appends(subject, forMs, 1, 1, latencies));
    latencies.sort((a, b) => a - b);
    figures.push(
      { name: `${single}, p50`, value: ms(quantile(latencies, 0.5)), budget: '≤ 1 ms', ...cost(run) },
      { name: `${single}, p99`, value: ms(quantile(latencies, 0.99)), budget: '≤ 10 ms' },
    );
  }
  const throughput = async (name: string, inFlight: number, batch: number, budget: string) => {
    if (!wants(name)) return;
    const run = await timed(node, () => appends(subject, forMs, inFlight, batch, []));
    figures.push({ name, value: perSecond(run.events / run.seconds), budget, ...cost(run) });
  };
  await throughput('appends, 128 in flight', 128, 1, '≥ 8,000/s');
  await throughput('events in batches of 50', 16, 50, '≥ 20,000/s');
  const live = 'append → handler';
  if (wants(live) && !appendsOnly) {
    const latencies = await handlerLatency(subject, forMs);
    figures.push(
      { name: `${live}, p50`, value: ms(quantile(latencies, 0.5)), budget: '≤ 2 ms' },
      { name: `${live}, p99`, value: ms(quantile(latencies, 0.99)), budget: '' },
    );
  }
  const caughtUp = 'catch-up events';
  if (wants(caughtUp)) {
    if (!appendsOnly) await appends(subject, Math.min(3000, forMs), 16, 50, []);
    await subject.catchUp();
    const run = await timed(node, () => subject.catchUp());
    figures.push({
      name: caughtUp,
      value: perSecond(run.events / run.seconds),
      budget: '≥ 40,000/s',
      ...cost(run),
    });
  }
  return figures;
}
