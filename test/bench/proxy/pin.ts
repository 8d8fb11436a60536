import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import type { BenchStand } from './stand.js';
import { say } from './verdict.js';

/** The proxies on the first core, whatever else the bench runs on the others: what they do with a core to themselves. */
export function pin(stand: BenchStand): void {
  const last = availableParallelism() - 1;
  if (last < 1) throw new Error('--pin takes two cores.');
  const rest = last === 1 ? '1' : `1-${last}`;
  for (const pid of [stand.floor.pid, stand.berth.pid]) toCores('0', pid);
  for (const pid of [stand.enginePid, stand.nodePid, process.pid]) toCores(rest, pid);
  say(`the proxies on core 0, the load, the engine and the event node on ${rest}`);
}

function toCores(cores: string, pid: number | undefined): void {
  const { status, stderr, error } = spawnSync('taskset', ['-acp', cores, String(pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`--pin needs taskset (util-linux): ${error?.message ?? stderr.trim()}`);
}
