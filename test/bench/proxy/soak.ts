import { MIB } from '#domain/units.js';
import { residentBytes } from '../measures.js';
import { say } from './verdict.js';
import { Caller, drive, requestOf, type Target } from './load.js';

const CONNECTIONS = 8;
const SAMPLE_MS = 1000;

export interface Soak {
  readonly calls: number;
  readonly startBytes: number;
  readonly endBytes: number;
}

/** Mixed load for a while: the memory at its end beside the memory when half of it had passed. */
export async function soak(
  target: Target & { readonly pid: number },
  bodies: readonly string[],
  minutes: number,
): Promise<Soak> {
  const requests = bodies.map((body) => requestOf(target.port, body));
  const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => Caller.open(target.port)));
  const samples: number[] = [];
  const until = Date.now() + minutes * 60_000;
  let calls = 0;
  for (let turn = 0; Date.now() < until; turn += 1) {
    const request = requests[turn % requests.length];
    if (!request) break;
    calls += (await drive(callers, request, SAMPLE_MS)).latencies.length;
    samples.push(residentBytes(target.pid));
  }
  for (const { socket } of callers) socket.destroy();
  // The least of some samples: what is left after garbage was collected.
  const least = (part: readonly number[]) => Math.min(...part);
  const startBytes = least(samples.slice(Math.floor(samples.length * 0.4), Math.ceil(samples.length * 0.6)));
  const endBytes = least(samples.slice(Math.floor(samples.length * 0.8)));
  const mib = (bytes: number) => (bytes / MIB).toFixed(0);
  say(
    `\nSoak: ${calls} calls in ${minutes} min; memory MiB halfway ${mib(startBytes)}, at the end ${mib(endBytes)}`,
  );
  return { calls, startBytes, endBytes };
}
