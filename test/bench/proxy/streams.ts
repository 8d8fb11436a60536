import { ascending, cpuMs, quantile, residentBytes } from '../measures.js';
import { FRAMES, PACED_EVERY_MS, PACED_STREAMS, say } from './verdict.js';
import { Caller, requestOf, type Target } from './load.js';
import { type BenchStand, COLD_MODELS } from './stand.js';

export interface Paced {
  readonly tokensPerSecond: number;
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  readonly cpuShare: number;
}

/** 64 streams of 100 tokens a second: how fast they come out, and how late each token is. */
export async function paced(targets: readonly Target[], body: string): Promise<ReadonlyMap<string, Paced>> {
  say(`\n${PACED_STREAMS} streams of ${1000 / PACED_EVERY_MS} tokens/s`);
  say('         tokens/s   delay p50 ms   delay p99 ms   proxy CPU %');
  const all = new Map<string, Paced>();
  for (const target of targets) {
    const delays: number[] = [];
    const callers = await Promise.all(Array.from({ length: PACED_STREAMS }, () => Caller.open(target.port)));
    for (const caller of callers) {
      caller.onChunk = (chunk) => {
        for (const match of chunk.toString('latin1').matchAll(/at=(\d+)\./g)) {
          delays.push(Date.now() - Number(match[1]));
        }
      };
    }
    const request = requestOf(target.port, body);
    const before = cpuMs(target.pid);
    const startedAt = performance.now();
    await Promise.all(callers.map((caller) => caller.call(request)));
    const elapsedMs = performance.now() - startedAt;
    for (const { socket } of callers) socket.destroy();
    const sorted = ascending(delays);
    const figures = {
      tokensPerSecond: ((PACED_STREAMS * FRAMES) / elapsedMs) * 1000,
      delayP50Ms: quantile(sorted, 0.5),
      delayP99Ms: quantile(sorted, 0.99),
      cpuShare: (cpuMs(target.pid) - before) / elapsedMs,
    };
    all.set(target.name, figures);
    say(
      `${target.name.padEnd(8)}${figures.tokensPerSecond.toFixed(0).padStart(9)}` +
        `${figures.delayP50Ms.toFixed(0).padStart(15)}${figures.delayP99Ms.toFixed(0).padStart(15)}` +
        (target.pid === undefined ? '-' : (figures.cpuShare * 100).toFixed(1)).padStart(14),
    );
  }
  return all;
}

/** Cold loads one after another: from the end of the load, still to be written to the log, to the caller's first token. */
export async function readiness(
  stand: BenchStand,
): Promise<{ readonly p50Ms: number; readonly maxMs: number }> {
  const delays: number[] = [];
  for (let n = 0; n < COLD_MODELS; n += 1) {
    const model = `cold-${n}`;
    const caller = await Caller.open(stand.berth.port);
    let firstByteAtMs: number | undefined;
    caller.onChunk = (chunk) => {
      if (chunk.includes('"token"')) firstByteAtMs ??= Date.now();
    };
    await caller.call(
      requestOf(stand.berth.port, JSON.stringify({ model, stream: true, messages: [], kind: 'burst' })),
    );
    caller.socket.destroy();
    const readyAtMs = stand.readyAtMs.get(model);
    if (readyAtMs === undefined || firstByteAtMs === undefined)
      throw new Error(`${model} was not loaded cold`);
    delays.push(firstByteAtMs - readyAtMs);
  }
  const sorted = ascending(delays);
  return { p50Ms: quantile(sorted, 0.5), maxMs: sorted.at(-1) ?? NaN };
}

/** What open streams cost that say nothing: the api's memory before and after. */
export async function idleStreams(stand: BenchStand, count: number, body: string): Promise<number> {
  const { berth } = stand;
  const request = requestOf(berth.port, body);
  const before = residentBytes(berth.pid);
  const callers: Caller[] = [];
  while (callers.length < count) {
    const caller = await Caller.open(berth.port);
    callers.push(caller);
    await new Promise<void>((resolve, reject) => {
      caller.onChunk = () => resolve();
      caller.call(request).catch(reject);
    });
  }
  // As long as a collection of garbage takes to come by.
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const after = residentBytes(berth.pid);
  for (const { socket } of callers) {
    socket.removeAllListeners('close');
    socket.destroy();
  }
  return after - before;
}
