import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bootId } from '#runtime/process-info.js';
import { homeHolder, HomeIsTaken, lockHome, lockPath } from './home-lock.js';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'berth-lock-test-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Takes the lock in a process of its own and keeps it until `end`. */
async function inAnotherProcess(): Promise<{ got: boolean; end: () => Promise<void> }> {
  const module = new URL('../../../../dist/apps/cli/src/up/home-lock.js', import.meta.url).href;
  const script = `
    import { lockHome } from ${JSON.stringify(module)};
    try { lockHome(${JSON.stringify(home)}); console.log('got'); } catch { console.log('refused'); }
    process.stdin.resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit');
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    got: said.toString().trim() === 'got',
    end: async () => {
      child.stdin.end();
      await gone;
    },
  };
}

describe('the lock of a home', () => {
  it('is held by one, who is named with the address to anyone else', () => {
    const lock = lockHome(home);
    lock.update({ address: 'http://127.0.0.1:4711' });
    expect(() => lockHome(home)).toThrow(HomeIsTaken);
    expect(() => lockHome(home)).toThrow(new RegExp(`pid ${process.pid} and answers at .*4711.*--home`));
    expect(homeHolder(home)?.address).toBe('http://127.0.0.1:4711');
    expect(statSync(lockPath(home)).mode & 0o077).toBe(0);
    lock.release();
    expect(existsSync(lockPath(home))).toBe(false);
  });

  it('is taken over from a process that is gone, with the children that it left', () => {
    const children = { api: { pid: 2 ** 22 + 1 } };
    // The pid is ours, but the process that had it started at another time.
    writeFileSync(
      lockPath(home),
      JSON.stringify({ pid: process.pid, startTicks: 1, bootId: bootId(), children }),
    );
    const lock = lockHome(home);
    expect(lock.abandoned?.children).toEqual(children);
    lock.release();
  });

  it('says nothing after a reboot, or when the file is damaged', () => {
    writeFileSync(lockPath(home), JSON.stringify({ pid: process.pid, bootId: 'another boot', children: {} }));
    expect(homeHolder(home)).toBeUndefined();
    lockHome(home).release();
    writeFileSync(lockPath(home), '{"pid":');
    lockHome(home).release();
  });

  it('goes to exactly one of several that take over at once', async () => {
    writeFileSync(
      lockPath(home),
      JSON.stringify({ pid: process.pid, startTicks: 1, bootId: bootId(), children: {} }),
    );
    const takers = await Promise.all(Array.from({ length: 4 }, inAnotherProcess));
    expect(takers.filter(({ got }) => got)).toHaveLength(1);
    await Promise.all(takers.map(({ end }) => end()));
    expect(homeHolder(home)).toBeUndefined();
  });
});
