import { ascending, cpuMs, quantile } from '../measures.js';
import { say } from './verdict.js';
import { Caller, drive, requestOf, type Target } from './load.js';

/** Short, so that what disturbs the machine disturbs all alike. */
const ROUND_MS = 250;
/** Not counted: until then it is the compiler that is measured. */
const WARM_CALLS = 40_000;
const WARM_WITHIN_MS = 15_000;

export interface Measured {
  readonly name: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly perSecond: number;
  /** Of the proxy, for one call: the median over the rounds, which a busy machine distorts least. */
  readonly cpuMs: number;
  /** Of the event node, for one call. */
  readonly nodeCpuMs: number;
}

/** Each target in turn for a short round, again and again. @returns what each came to over all rounds. */
export async function compare(
  what: string,
  targets: readonly Target[],
  nodePid: number,
  options: { readonly connections: number; readonly seconds: number; readonly body: string },
): Promise<readonly Measured[]> {
  const { connections, seconds, body } = options;
  const rounds = Math.max(2, Math.ceil((seconds * 1000) / ROUND_MS));
  const runs = await Promise.all(
    targets.map(async (target) => ({
      target,
      request: requestOf(target.port, body),
      callers: await Promise.all(Array.from({ length: connections }, () => Caller.open(target.port))),
      latencies: [] as number[],
      elapsedMs: 0,
      cpuMs: [] as number[],
      nodeCpu: 0,
    })),
  );
  for (const run of runs) await warmUp(run.callers, run.request);
  for (let round = 0; round < rounds; round += 1) {
    for (const run of runs) {
      const before = cpuMs(run.target.pid);
      const nodeBefore = cpuMs(nodePid);
      const { latencies, elapsedMs } = await drive(run.callers, run.request, ROUND_MS);
      for (const latency of latencies) run.latencies.push(latency);
      run.elapsedMs += elapsedMs;
      run.cpuMs.push((cpuMs(run.target.pid) - before) / latencies.length);
      run.nodeCpu += cpuMs(nodePid) - nodeBefore;
    }
  }
  for (const { callers } of runs) for (const { socket } of callers) socket.destroy();
  const measured = runs.map(({ target, latencies, elapsedMs, cpuMs: perCall, nodeCpu }) => {
    const sorted = ascending(latencies);
    return {
      name: target.name,
      p50Ms: quantile(sorted, 0.5),
      p99Ms: quantile(sorted, 0.99),
      perSecond: (sorted.length / elapsedMs) * 1000,
      cpuMs: quantile(ascending(perCall), 0.5),
      nodeCpuMs: nodeCpu / sorted.length,
    };
  });
  print(`${what}, ${connections} connection${connections === 1 ? '' : 's'}`, measured);
  return measured;
}

async function warmUp(callers: readonly Caller[], request: Buffer): Promise<void> {
  const until = Date.now() + WARM_WITHIN_MS;
  for (let calls = 0; calls < WARM_CALLS && Date.now() < until;) {
    calls += (await drive(callers, request, ROUND_MS)).latencies.length;
  }
}

function print(what: string, measured: readonly Measured[]): void {
  say(`\n${what}`);
  say(
    '           p50 ms   p99 ms  added p50   calls/s  proxy CPU ms/call  over the floor  event node CPU ms/call',
  );
  const direct = measured[0]?.p50Ms ?? NaN;
  const floor = measured.find(({ name }) => name === 'floor')?.cpuMs ?? NaN;
  for (const m of measured) {
    const isBerth = m.name === 'berth';
    say(
      [
        m.name.padEnd(8),
        m.p50Ms.toFixed(3).padStart(9),
        m.p99Ms.toFixed(3).padStart(9),
        (m.p50Ms - direct).toFixed(3).padStart(11),
        m.perSecond.toFixed(0).padStart(10),
        (m.name === 'direct' ? '-' : m.cpuMs.toFixed(3)).padStart(19),
        (m.name === 'direct' ? '-' : (m.cpuMs / floor).toFixed(2)).padStart(16),
        (isBerth ? m.nodeCpuMs.toFixed(3) : '-').padStart(24),
      ].join(''),
    );
  }
}
