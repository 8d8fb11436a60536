import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, expect, it } from 'vitest';
import { residentId } from '#domain/ids.js';
import { createLogger } from '#runtime/logger.js';
import { isAlive } from '#runtime/process-info.js';
import { EngineBench, eventually } from '../engines/test-bench.js';
import { workOf } from '../engines/work.js';
import type { RunningEngine } from '../ports.js';
import { StillEngines } from './still-engines.js';

const bench = new EngineBench();
afterAll(() => bench.close());
const log = createLogger('test');
log.level = 'silent';

it('ends an engine that was stopped for good, as a crash, and leaves the one beside it', async () => {
  const driver = bench.driver();
  const [frozen, well] = [await bench.start('chat-a', {}, driver), await bench.start('chat-b', {}, driver)];
  const watch = new StillEngines({ serving: () => [frozen, well], silenceMs: 1500, log }).start();
  try {
    process.kill(frozen.pid, 'SIGSTOP');
    const exit = await frozen.exited;
    expect(exit.signal).toBe('SIGKILL');
    expect(exit.unansweredSeconds).toBeGreaterThanOrEqual(1.5);
    expect(isAlive(well.pid, well.pidStartTicks)).toBe(true);
    expect(await well.requestsInFlight()).toBe(0);
  } finally {
    watch.stop();
  }
});

it('lets an engine be that answers nothing because it computes, and ends it once it does not', async () => {
  const child = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  let looks = 0;
  let gaveUp: number | undefined;
  const engine: Partial<RunningEngine> = {
    residentId: residentId('computes'),
    pid,
    answers: () => {
      looks += 1;
      return Promise.resolve(false);
    },
    work: () => workOf([pid]),
    giveUp: (seconds) => {
      gaveUp ??= seconds;
    },
  };
  const watch = new StillEngines({ serving: () => [engine as RunningEngine], silenceMs: 300, log }).start();
  try {
    // Four times as many looks as one that stands still is given.
    await eventually('it was looked at often', () => looks >= 25);
    expect(gaveUp).toBeUndefined();
    child.kill('SIGSTOP');
    await eventually('it is given up', () => gaveUp !== undefined);
    expect(gaveUp).toBeGreaterThanOrEqual(0.3);
  } finally {
    watch.stop();
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
