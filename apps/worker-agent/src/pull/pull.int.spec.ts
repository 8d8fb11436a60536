import { execFile, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bootId, packageRoot } from '#runtime/process-info.js';
import { freeLoopbackPort } from '../engines/port.js';
import { makeModel } from '../make-model/index.js';

const MAIN = join(packageRoot(), 'dist/apps/worker-agent/src/pull/main.js');
const TOKEN = 'hf_secretsecretsecret';
const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

/** A server that speaks what is used of the hub: the tree of a repository, and its files by range. */
class LocalHub {
  readonly files = new Map<string, { content: Buffer; sha256?: string; inGit?: true }>();
  readonly requests: { url: string; range?: string; authorization?: string }[] = [];
  /** Cuts the connection after so many bytes of a file, once per entry. */
  cuts: number[] = [];
  status: number | undefined;
  needsToken = false;
  knowsRanges = true;
  private server: Server | undefined;

  async start(): Promise<string> {
    this.server = createServer((request, response) => this.answer(request, response));
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? '';
    const { range, authorization } = request.headers;
    this.requests.push({
      url,
      ...(range === undefined ? {} : { range }),
      ...(authorization === undefined ? {} : { authorization }),
    });
    if (this.needsToken && authorization !== `Bearer ${TOKEN}`) {
      refuse(response, 401);
      return;
    }
    if (this.status !== undefined) {
      refuse(response, this.status);
      return;
    }
    if (url.startsWith('/api/models/acme/ship-GGUF/tree/main')) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify([...this.files].map(([path, f]) => entry(path, f))));
      return;
    }
    const path = decodeURIComponent(url.replace('/acme/ship-GGUF/resolve/main/', ''));
    const file = this.files.get(path);
    if (file === undefined) {
      refuse(response, 404);
      return;
    }
    const from = this.knowsRanges ? Number(/bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0) : 0;
    const rest = file.content.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length });
    const cut = this.cuts.shift();
    if (cut === undefined) response.end(rest);
    else response.write(rest.subarray(0, cut), () => response.destroy());
  }
}

const refuse = (response: ServerResponse, status: number) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: 'refused' }));
};

function entry(path: string, file: { content: Buffer; sha256?: string; inGit?: true }) {
  const size = file.content.length;
  if (file.inGit) {
    const oid = createHash('sha1').update(`blob ${size}\0`).update(file.content).digest('hex');
    return { type: 'file', path, size, oid };
  }
  const oid = file.sha256 ?? sha256(file.content);
  return { type: 'file', path, size, oid: 'f'.repeat(40), lfs: { oid, size, pointerSize: 134 } };
}

let hub: LocalHub;
let endpoint: string;
let home: string;
let model: Buffer;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-pull-'));
  hub = new LocalHub();
  endpoint = await hub.start();
  model = await readFile((await makeModel({ preset: 'chat-a', file: join(home, 'made.gguf') })).file);
});
afterEach(async () => {
  await hub.stop();
  await rm(home, { recursive: true, force: true });
});

const at = (name: string) => join(home, 'models/acme/ship-GGUF', name);

async function berthPull(source: string, env: Record<string, string> = {}) {
  const child = fork(MAIN, [source], {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], BERTH_HOME: home, HF_ENDPOINT: endpoint, ...env },
  });
  let [out, err] = ['', ''];
  child.stdout?.on('data', (data) => (out += String(data)));
  child.stderr?.on('data', (data) => (err += String(data)));
  const [code] = (await once(child, 'close')) as [number];
  return { code, out, err };
}

describe('berth pull', () => {
  test('fetches the only file of a repository and says what to call it by', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    hub.files.set('README.md', { content: Buffer.from('# Ship'), inGit: true });
    const { code, out, err } = await berthPull('acme/ship-GGUF');
    expect({ code, err: err.includes('100 %') }).toEqual({ code: 0, err: true });
    expect(out).toContain('call it by "acme/ship-GGUF"');
    expect(await readFile(at('ship-Q8_0.gguf'))).toEqual(model);
    expect((await stat(at('ship-Q8_0.gguf'))).mode & 0o777).toBe(0o600);
    expect(await readdir(at(''))).toEqual(['ship-Q8_0.gguf']);
  });

  test('takes Q4_K_M where several are offered, and a label or a file when one is picked', async () => {
    for (const quant of ['Q8_0', 'Q4_K_M', 'Q2_K']) {
      hub.files.set(`ship-${quant}.gguf`, { content: Buffer.concat([model, Buffer.from(quant)]) });
    }
    expect((await berthPull('acme/ship-GGUF')).code).toBe(0);
    expect(await readdir(at(''))).toEqual(['ship-Q4_K_M.gguf']);
    expect((await berthPull('acme/ship-GGUF:q2_k')).code).toBe(0);
    expect((await berthPull('acme/ship-GGUF:ship-Q8_0.gguf')).code).toBe(0);
    expect((await readdir(at(''))).sort()).toEqual(['ship-Q2_K.gguf', 'ship-Q4_K_M.gguf', 'ship-Q8_0.gguf']);
  });

  test('fetches all shards of a set', async () => {
    for (const i of [1, 2]) hub.files.set(`big/ship-Q8_0-0000${i}-of-00002.gguf`, { content: model });
    expect((await berthPull('acme/ship-GGUF:Q8_0')).code).toBe(0);
    expect(await readdir(at('big'))).toHaveLength(2);
  });

  test('lists the choices when none is the usual one', async () => {
    for (const quant of ['Q8_0', 'Q5_K_S']) hub.files.set(`ship-${quant}.gguf`, { content: model });
    const { code, err } = await berthPull('acme/ship-GGUF');
    expect(code).toBe(1);
    expect(err).toMatch(/acme\/ship-GGUF:Q8_0 +\d+ KiB\n +acme\/ship-GGUF:Q5_K_S/);
    expect((await berthPull('acme/ship-GGUF:Q3_K_M')).err).toContain('has no "Q3_K_M"');
  });

  test('takes a broken connection up where it broke', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    hub.cuts = [100_000, 50_000];
    const { code } = await berthPull('acme/ship-GGUF');
    expect(code).toBe(0);
    expect(await readFile(at('ship-Q8_0.gguf'))).toEqual(model);
    const starts = hub.requests
      .filter((r) => r.url.includes('/resolve/'))
      .map((r) => Number(/\d+/.exec(r.range ?? '0')![0]));
    expect(starts).toHaveLength(3);
    expect(starts[0]).toBe(0);
    expect(starts[1]).toBeGreaterThan(0);
    expect(starts[2]).toBeGreaterThanOrEqual(starts[1]!);
  });

  test('goes on from what an earlier run left, and starts again with a server that knows no ranges', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    await mkdir(at(''), { recursive: true });
    await writeFile(at('ship-Q8_0.gguf.part'), model.subarray(0, 123_456));
    expect((await berthPull('acme/ship-GGUF')).code).toBe(0);
    expect(hub.requests.at(-1)?.range).toBe('bytes=123456-');
    expect(await readFile(at('ship-Q8_0.gguf'))).toEqual(model);

    await rm(at('ship-Q8_0.gguf'));
    await writeFile(at('ship-Q8_0.gguf.part'), Buffer.alloc(5000, 1));
    hub.knowsRanges = false;
    expect((await berthPull('acme/ship-GGUF')).code).toBe(0);
    expect(await readFile(at('ship-Q8_0.gguf'))).toEqual(model);
  });

  test('does not fetch again what is there', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    await berthPull('acme/ship-GGUF');
    const before = hub.requests.length;
    expect((await berthPull('acme/ship-GGUF')).out).toContain('was there already');
    expect(hub.requests.slice(before).filter((r) => r.url.includes('/resolve/'))).toEqual([]);
  });

  test('keeps nothing of a file whose content is not what the hub lists', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model, sha256: 'a'.repeat(64) });
    const { code, err } = await berthPull('acme/ship-GGUF');
    expect(code).toBe(1);
    expect(err).toContain('SHA-256');
    expect(await readdir(at(''))).toEqual([]);
  });

  test.each([
    [404, /There is no repository or file at .*acme\/ship-GGUF/],
    [401, /does not exist, or asks who you are.*HF_TOKEN/],
    [429, /asks to wait/],
    [500, /answered with status 500/],
  ])('says in one sentence what status %d means', async (status, words) => {
    hub.status = status;
    const { code, err } = await berthPull('acme/ship-GGUF');
    expect(code).toBe(1);
    expect(err.trim().split('\n').at(-1)).toMatch(words);
    expect(err).not.toContain('    at ');
  });

  test('shows the token to the hub and to nobody else', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    hub.needsToken = true;
    const good = await berthPull('acme/ship-GGUF', { HF_TOKEN: TOKEN });
    expect(good.code).toBe(0);
    const bad = await berthPull('acme/ship-GGUF', { HF_TOKEN: 'hf_otherotherother' });
    expect(bad.code).toBe(1);
    expect(bad.err).toContain('your HF_TOKEN may not read it');
    for (const text of [good.out, good.err, bad.out, bad.err]) expect(text).not.toMatch(/hf_\w+/);
  });

  test('says that it is offline when the hub cannot be reached', async () => {
    await hub.stop();
    const { code, err } = await berthPull('acme/ship-GGUF');
    expect(code).toBe(1);
    expect(err.trim().split('\n')).toHaveLength(1);
    expect(err).toMatch(/127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)\. Are you offline\?/);
  });

  test('fetches nothing of what would go beyond the limit of models on the disk, which an admin may lower', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    const beside = join(home, 'models/quay/other');
    await mkdir(beside, { recursive: true });
    await writeFile(join(beside, 'other-Q8_0.gguf'), Buffer.alloc(5000));
    const limits = (atStart: number, set?: number) => ({
      BERTH_DISK_MAX: `${atStart}`,
      ...(set === undefined ? {} : { BERTH_DISK_SETTING: `${set}` }),
    });
    const just = model.length + 5000;
    const note = join(home, 'models/.pulling-other.json');
    const coming = [{ target: join(beside, 'coming.gguf'), bytes: 700 }];
    const noted = (pid: number, startTicks?: number) =>
      writeFile(note, JSON.stringify({ pid, startTicks, coming }));

    const above = await berthPull('acme/ship-GGUF', limits(just - 1));
    expect(above).toMatchObject({ code: 1, out: '' });
    expect(above.err).toMatch(
      /are needed in .*models, where models take 5 KiB; the limit set at start \(disk-max\) is .*raise the limit\.\n$/,
    );
    expect((await berthPull('acme/ship-GGUF', limits(just, just - 1))).err).toContain('set by an admin is');
    await noted(process.pid);
    expect((await berthPull('acme/ship-GGUF', limits(just))).err).toContain('other transfers bring 700 B;');
    expect(hub.requests.filter((r) => r.url.includes('/resolve/'))).toEqual([]);
    expect(await readdir(at(''))).toEqual([]);

    // A process with this id, but not the one that noted it.
    await noted(process.pid, 1);
    expect((await berthPull('acme/ship-GGUF', limits(just, just))).code).toBe(0);
    expect((await readdir(join(home, 'models'))).sort()).toEqual(['acme', 'quay']);
    expect((await berthPull('acme/ship-GGUF', limits(1))).out).toContain('was there already');
  });

  test('keeps to the limit set at start when the Berth that runs on its home cannot be asked, and says so', async () => {
    hub.files.set('ship-Q8_0.gguf', { content: model });
    // A Berth that is there, and whose api is not: its address was just given back.
    const away = `http://127.0.0.1:${await freeLoopbackPort()}`;
    const holder = { pid: process.pid, bootId: bootId(), address: away, children: {} };
    await writeFile(join(home, 'berth.lock'), JSON.stringify(holder));
    await writeFile(join(home, 'worker-id'), 'w');
    const withMost = (bytes: number) =>
      new Promise<{ code: number; err: string }>((resolve) => {
        const args = [join(packageRoot(), 'bin/berth'), 'pull', '--local', 'acme/ship-GGUF'];
        const env = { PATH: process.env['PATH'], HOME: home, BERTH_HOME: home, HF_ENDPOINT: endpoint };
        execFile(process.execPath, args, { env: { ...env, BERTH_DISK_MAX: `${bytes}` } }, (error, _, err) => {
          resolve({ code: Number(error?.code ?? 0), err });
        });
      });

    const above = await withMost(model.length - 1);
    expect(above.err).toContain(`could not be asked: Nothing answers at ${away}`);
    expect(above.err).toContain('the limit set at start (disk-max) is');
    expect([above.code, await readdir(at(''))]).toEqual([1, []]);
    const within = await withMost(model.length);
    expect(within.err).toContain('could not be asked');
    expect([within.code, await readdir(at(''))]).toEqual([0, ['ship-Q8_0.gguf']]);
  });

  test('refuses a path that would leave the folder, and a name that is none', async () => {
    hub.files.set('../../ship-Q8_0.gguf', { content: model });
    expect((await berthPull('acme/ship-GGUF')).err).toContain('not safe to write');
    expect((await berthPull('acme')).err).toContain('OWNER/REPO');
    expect((await berthPull('../x')).err).toContain('OWNER/REPO');
  });
});
