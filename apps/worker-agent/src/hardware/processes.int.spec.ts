import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { findProgram } from '../engines/spawn.js';
import { eventually } from '../engines/test-bench.js';
import { listProcesses, OwnedProcesses } from './processes.js';

it('what an engine forks is its own at any depth, also when it has left its session and lost its parents', async () => {
  const setsid = findProgram('setsid', process.env['PATH']);
  if (setsid === undefined) throw new Error('setsid of util-linux is needed');
  // An engine, a shell in a session of its own, another below it, and what holds the memory.
  const inner = `sh -c 'sleep 600 & echo $PPID $$ $!; wait'`;
  const engine = spawn('sh', ['-c', `"${setsid}" sh -c "${inner.replaceAll('$', '\\$')}; :" & wait`], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: engine.stdout }).once('line', resolve),
  );
  const pids = line.split(' ').map(Number);
  const [outer = 0, middle = 0, holder = 0] = pids;
  try {
    const owned = new OwnedProcesses();
    const ownerOf = (pid: number) => owned.update(new Set([engine.pid ?? 0]), listProcesses()).get(pid);
    for (const pid of pids) expect(ownerOf(pid)).toBe(engine.pid);
    expect(ownerOf(process.pid)).toBeUndefined();
    for (const pid of [outer, middle]) process.kill(pid, 'SIGKILL');
    await eventually('its parents are gone', () => {
      const parent = listProcesses().find(({ pid }) => pid === holder)?.parent;
      return parent !== undefined && parent !== middle;
    });
    expect(ownerOf(holder)).toBe(engine.pid);
    // Without its engine it is anybody's.
    expect(owned.update(new Set(), listProcesses()).get(holder)).toBeUndefined();
  } finally {
    for (const pid of [...pids, engine.pid ?? 0]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended already.
      }
    }
  }
});
