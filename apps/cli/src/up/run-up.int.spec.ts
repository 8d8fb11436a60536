import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive } from '#runtime/process-info.js';
import { homeHolder } from './home-lock.js';
import { serverPid } from './postgres/cluster.js';
import { waitFor } from './wait.js';

/**
 * Stands for `bin/berth`: real processes with the real line to the supervisor, and nothing behind it. FAIL, CRASH and
 * HANG name the one that misbehaves. Each run leaves a line of its arguments in `runs`.
 */
const FAKE = `
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
const [name, ...args] = process.argv.slice(2);
const { FAIL, CRASH, HANG, RUNS, BERTH_PORT } = process.env;
appendFileSync(RUNS, name + ' ' + args.join(' ') + '\\n');
process.on('SIGINT', () => undefined);
const note = (text) => appendFileSync(RUNS, text + ' ' + name + '\\n');
process.on('SIGTERM', () => {
  note('stop');
  if (HANG !== name) setTimeout(() => { note('end'); process.exit(0); }, 100);
});
process.on('disconnect', () => process.exit(0));
setInterval(() => undefined, 1000);
const ready = (details) => process.send({ berth: 'ready', details });
if (FAIL === name) process.send({ berth: 'failed', message: 'The ' + name + ' needs 3 GiB and has 2.' }, () => process.exit(1));
else if (CRASH === name) { console.log('the last words'); process.exit(3); }
else if (name === 'event-node') {
  const data = args[args.indexOf('--data') + 1];
  mkdirSync(data, { recursive: true });
  for (const role of ['api', 'agent', 'projector']) writeFileSync(data + '/connection-' + role, 'esdb://u:p@127.0.0.1:4711');
  const asked = Number(args[args.indexOf('--port') + 1]);
  ready({ port: asked === 0 ? 4711 : asked });
} else if (name === 'api') {
  const body = JSON.stringify({ data: [{ id: 'berth/smoke', berth: { kind: 'chat', smoke: true } }] });
  const server = createServer((_, response) => response.end(body));
  server.listen(Number(BERTH_PORT), '127.0.0.1', () => ready({ port: server.address().port }));
} else ready({});
`;

let root: string;
let home: string;
const started: ChildProcess[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth up test '));
  home = join(root, 'home');
  writeFileSync(join(root, 'fake.mjs'), FAKE);
  const module = (path: string) =>
    JSON.stringify(new URL(`../../../../dist/apps/cli/src/${path}`, import.meta.url).href);
  writeFileSync(
    join(root, 'up.mjs'),
    `import { runUp } from ${module('up/run-up.js')};
     import { loadSettings } from ${module('settings/load.js')};
     process.exitCode = await runUp({
       settings: loadSettings({ home: ${JSON.stringify(home)}, port: process.argv[2] ?? '0' }),
       verbose: false, script: ${JSON.stringify(join(root, 'fake.mjs'))}, readyWithinMs: 20_000 });`,
  );
});
afterEach(async () => {
  for (const child of started.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  await waitFor(() => ours().length === 0, 10_000);
  rmSync(root, { recursive: true, force: true });
});

function up(env: Record<string, string> = {}, args: string[] = []) {
  const child = spawn(process.execPath, [join(root, 'up.mjs'), ...args], {
    detached: true,
    env: {
      PATH: process.env['PATH'],
      HOME: root,
      RUNS: join(root, 'runs'),
      // Most of these tests need no real one.
      DATABASE_URL: 'postgres://u@localhost/none',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    child,
    text: () => text,
    ended,
    /** To the whole group, as a terminal does it. */
    interrupt: () => {
      try {
        process.kill(-child.pid!, 'SIGINT');
      } catch (error) {
        // The group is gone already.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    },
    running: async () => {
      const there = await waitFor(() => text.includes('Ctrl-C stops') || child.exitCode !== null, 30_000);
      if (!there || child.exitCode !== null) throw new Error(`not running:\n${text}`);
    },
  };
}

const runs = () => readFileSync(join(root, 'runs'), 'utf8').trim().split('\n');

/** Every process whose command names a file of this test's folder; any file of it unless one is said. */
const ours = (file = ''): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid) || pid === process.pid) return false;
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(join(root, file)) && isAlive(pid);
      } catch {
        // It ended since it was listed.
        return false;
      }
    });

describe('berth up', () => {
  it('starts all, ends with a call to try, and at Ctrl-C stops in order and leaves nothing', async () => {
    const one = up({ DATABASE_URL: '' });
    await one.running();
    const address = /answers at (http:\/\/127\.0\.0\.1:\d+)\/v1/.exec(one.text())?.[1];
    expect(one.text()).toContain(`curl ${address!}/v1/chat/completions`);
    expect(one.text()).toMatch(/berth\/smoke is only a smoke model/);
    for (const title of ['event log', 'postgres', 'projector', 'worker agent', 'api']) {
      expect(one.text()).toMatch(new RegExp(`^ {2}${title} +ready +\\d+\\.\\d\\d s`, 'm'));
    }
    expect(homeHolder(home)).toMatchObject({ pid: one.child.pid, address });
    expect(statSync(home).mode & 0o077).toBe(0);
    one.interrupt();
    expect(await one.ended).toBe(0);
    const order = [...one.text().matchAll(/^ {2}(.+?) +stopped/gm)].map((match) => match[1]);
    expect(order).toEqual(['api', 'worker agent', 'projector', 'postgres', 'event log']);
    // Each has ended before the next one is asked to: an agent that ends its engines still has the log.
    expect(runs().filter((line) => /^(stop|end) /.test(line))).toEqual(
      ['api', 'agent', 'projector', 'event-node'].flatMap((name) => [`stop ${name}`, `end ${name}`]),
    );
    expect(ours()).toEqual([]);
    expect(homeHolder(home)).toBeUndefined();
  });

  it('starts a process again that died, and the event log on the port that the others know', async () => {
    const one = up();
    await one.running();
    const pidOf = (name: string) => homeHolder(home)!.children[name]?.pid;
    const before = { agent: pidOf('agent'), log: pidOf('event-node') };
    const { address } = homeHolder(home)!;
    process.kill(pidOf('api')!, 'SIGKILL');
    process.kill(before.agent!, 'SIGKILL');
    process.kill(before.log!, 'SIGKILL');
    expect(await waitFor(() => /worker agent is back/.test(one.text()), 10_000)).toBe(true);
    expect(await waitFor(() => /event log is back/.test(one.text()), 10_000)).toBe(true);
    expect(one.text()).toMatch(/worker agent ended \(SIGKILL\); starting it again in 0\.2 s/);
    expect(await waitFor(() => /api is back/.test(one.text()), 10_000)).toBe(true);
    expect((await fetch(`${address!}/v1/models`)).status).toBe(200);
    expect(pidOf('agent')).not.toBe(before.agent);
    expect(runs().filter((line) => line.startsWith('event-node'))[1]).toContain('--port 4711');
    one.interrupt();
    expect(await one.ended).toBe(0);
  });

  it.each(['event-node', 'agent'])('fails with the own sentence of %s and leaves nothing', async (name) => {
    const one = up({ FAIL: name });
    expect(await one.ended).toBe(1);
    expect(one.text()).toContain(`did not start: The ${name} needs 3 GiB and has 2.`);
    expect(ours()).toEqual([]);
    expect(homeHolder(home)).toBeUndefined();
  });

  it('fails with the end of the log of one that says nothing itself', async () => {
    const one = up({ CRASH: 'projector' });
    expect(await one.ended).toBe(1);
    expect(one.text()).toMatch(/The projector did not start: it ended with exit code 3/);
    expect(one.text()).toContain('| the last words');
    expect(one.text()).toContain(join(home, 'logs', 'projector.log'));
    expect(ours()).toEqual([]);
  });

  it('names who holds the home when it is started there twice', async () => {
    const one = up();
    await one.running();
    const two = up();
    expect(await two.ended).toBe(1);
    expect(two.text()).toMatch(
      new RegExp(`already runs on .*: pid ${one.child.pid!} and answers at http://127.*--home`),
    );
    one.interrupt();
    expect(await one.ended).toBe(0);
  });

  it('names the port that is taken, by whom, and the flag, before anything is started', async () => {
    const one = up();
    await one.running();
    const port = /127\.0\.0\.1:(\d+)/.exec(one.text())![1]!;
    home = join(root, 'other home');
    writeFileSync(
      join(root, 'up.mjs'),
      readFileSync(join(root, 'up.mjs'), 'utf8').replace(/home: "[^"]*"/, `home: ${JSON.stringify(home)}`),
    );
    const runsBefore = runs().length;
    const two = up({}, [port]);
    expect(await two.ended).toBe(1);
    expect(two.text()).toMatch(
      new RegExp(`Port ${port} on 127.0.0.1 is taken by .*\\(pid \\d+\\).*--port \\d+`),
    );
    expect(runs()).toHaveLength(runsBefore);
  });

  it('takes everything with it when it is killed, and starts cleanly after that', async () => {
    const one = up({ DATABASE_URL: '' });
    await one.running();
    expect(serverPid(join(home, 'postgres', 'data'))).toBeDefined();
    one.child.kill('SIGKILL');
    await one.ended;
    const two = up({ DATABASE_URL: '' });
    await two.running();
    expect(ours('up.mjs')).toEqual([two.child.pid]);
    two.child.kill('SIGKILL');
    await two.ended;
    expect(await waitFor(() => ours().length === 0, 15_000)).toBe(true);
  });

  it('waits for one that does not stop only until Ctrl-C comes again', async () => {
    const one = up({ HANG: 'api' });
    await one.running();
    one.interrupt();
    await waitFor(() => runs().includes('stop api'), 10_000);
    expect(one.child.exitCode).toBeNull();
    // Asked again until it is taken: two signals in the same moment count as one.
    const hasStopped = () => one.text().includes('Berth has stopped.');
    expect(await waitFor(() => hasStopped() || (one.interrupt(), false), 20_000, 400)).toBe(true);
    expect(await one.ended).toBe(0);
    expect(ours()).toEqual([]);
  });

  it('stops in the middle of a start when it is asked to', async () => {
    const one = up({ DATABASE_URL: '' });
    await waitFor(() => existsSync(join(root, 'runs')), 20_000);
    one.child.kill('SIGTERM');
    expect(await one.ended).toBe(0);
    expect(ours()).toEqual([]);
  });
});
