import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';

/** An api in small: what it answers to each path, status and body. */
let answers: Record<string, { status?: number; body: unknown }>;
let asked: string[];
let sent: { method: string; key: string | undefined; body: unknown }[];
let server: Server;
let url: string;
let home: string;

const ids = ['01a22b80-83c8-7278-ab43-68991f62a6bd', '01a22b80-99c8-7278-ab43-68991f62a6bd'] as const;
const call = (callId: string) => ({ callId, modelKey: 'a/b', receivedAt: '2026-01-01T00:00:00Z' });

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'berth-readers-test-'));
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const body: unknown = text === '' ? undefined : JSON.parse(text);
      sent.push({ method: request.method ?? '', key: request.headers.authorization, body });
    });
    const path = (request.url ?? '').split('?')[0] ?? '';
    const answer = answers[request.url ?? ''] ??
      answers[path] ?? { status: 404, body: { detail: `No ${path}.` } };
    const said = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    response.writeHead(answer.status ?? 200).end(said);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  asked = [];
  sent = [];
  answers = {
    '/health': { body: { status: 'ok', version: '9.9.9', degraded: [], workers: [] } },
    '/admin/queue': { body: { items: [] } },
    '/admin/workers': { body: { items: [{ workerId: 'w', name: 'vm', lost: false, devices: [] }] } },
    '/admin/residents': { body: { items: [] } },
    '/admin/storage': {
      body: { folders: [{ workerId: 'w', usedBytes: 1024 ** 3, roomBytes: 0 }] },
    },
    '/admin/calls': { body: { items: ids.map(call) } },
    [`/admin/calls/${ids[0]}/explain`]: { body: { callId: ids[0], text: 'Because it fits.' } },
    [`/admin/calls/${ids[1]}/explain`]: { body: { callId: ids[1], text: 'The other.' } },
  };
});

const berth = (args: string[], env: Record<string, string> = {}) =>
  new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(
      process.execPath,
      [join(packageRoot(), 'bin', 'berth'), ...args],
      { env: { PATH: process.env['PATH'], HOME: home, BERTH_HOME: home, ...env } },
      (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }),
    );
  });

/** Messages are wrapped to the width of a terminal. */
const unwrapped = (text: string): string => text.replaceAll(/\s+/g, ' ');

describe('the reading commands', () => {
  it('print for people, and everything as JSON for programs', async () => {
    const people = await berth(['status', '--url', url]);
    expect([people.code, people.out]).toEqual([
      0,
      `Berth 9.9.9 at ${url}: ok\n\nworker vm: connected\n  disk: models 1.00 GiB, no limit, pull up to 0 B\n\nNo model is loaded.\n\nNo call waits.\n`,
    ]);
    const programs = await berth(['status', '--json', '--url', url]);
    expect(JSON.parse(programs.out)).toMatchObject({ health: { status: 'ok' }, workers: [{ name: 'vm' }] });
  });

  it('find the address by --url, and by the port in the environment', async () => {
    expect((await berth(['status'], { BERTH_PORT: new URL(url).port })).out).toContain(url);
    expect((await berth(['status', '--port', new URL(url).port])).out).toContain(url);
  });

  it('show the rest of the status when the views are away', async () => {
    answers['/admin/workers'] = { status: 503, body: { detail: 'Postgres does not answer.' } };
    const { code, out } = await berth(['status', '--url', url]);
    expect(code).toBe(0);
    expect(out).toContain('The views cannot be read: Postgres does not answer.');
  });

  it('explain the call of an id, of a unique start of one, and the last', async () => {
    expect((await berth(['explain', ids[1], '--url', url])).out).toBe('The other.\n');
    expect((await berth(['explain', ids[0].slice(0, 12), '--url', url])).out).toBe('Because it fits.\n');
    asked = [];
    expect((await berth(['explain', 'last', '--url', url])).out).toBe('Because it fits.\n');
    expect(asked[0]).toBe('/admin/calls?limit=1');
  });

  it('print the nights of the what-if as rows for programs, over all pages, like every other list', async () => {
    const [night, older] = [{ day: '2026-01-02' }, { day: '2026-01-01' }];
    answers['/admin/what-if/nightly?limit=200'] = { body: { items: [night], next: 'n' } };
    answers['/admin/what-if/nightly?limit=200&after=n'] = { body: { items: [older] } };
    const { code, out } = await berth(['what-if', '--nightly', '--json', '--url', url]);
    expect([code, JSON.parse(out)]).toEqual([0, [night, older]]);
  });

  it('make a key with what it may, and show it', async () => {
    answers['/admin/keys'] = { body: { keyId: '0a', key: 'bk_0a_x' } };
    const args = ['keys', 'create', 'desk', '--admin', '--models', 'a/b,c', '--url', url];
    const { code, out } = await berth(args, { BERTH_KEY: 'bk_1_y' });
    expect([code, out.split('\n')[0]]).toEqual([0, 'bk_0a_x']);
    const body = { name: 'desk', scope: 'admin', models: ['a/b', 'c'] };
    expect(sent).toEqual([{ method: 'POST', key: 'Bearer bk_1_y', body }]);
  });

  it('list keys with what has become of each', async () => {
    const key = { keyId: '0a', name: 'desk', scope: 'use', issuedAt: '2026-01-02T00:00:00Z' };
    answers['/admin/keys'] = {
      body: { items: [key, { ...key, keyId: '0b', revokedAt: '2026-02-03T00:00:00Z' }] },
    };
    expect((await berth(['keys', '--url', url])).out).toBe(
      'id  scope  made        state               name\n' +
        '0a  use    2026-01-02  good                desk\n' +
        '0b  use    2026-01-02  revoked 2026-02-03  desk\n',
    );
  });

  it('set and unset a setting of a scope, and say what changed', async () => {
    answers['/admin/settings/w~a%2Fb'] = { body: { scope: 'w~a/b', changed: ['kvType'] } };
    const scoped = ['--scope', 'w~a/b', '--url', url];
    const { out } = await berth(['settings', 'set', 'kvType', 'q8_0', ...scoped]);
    expect(out).toBe('Changed for w~a/b: kvType.\n');
    await berth(['settings', 'set', 'parallel', '4', ...scoped]);
    await berth(['settings', 'unset', 'kvType', ...scoped]);
    const values = [{ kvType: 'q8_0' }, { parallel: 4 }, { kvType: null }];
    expect(sent).toEqual(
      values.map((value) => ({ method: 'PATCH', key: undefined, body: { values: value } })),
    );
  });

  it('read a list to its end, page by page', async () => {
    answers['/admin/calls?limit=200'] = { body: { items: [call(ids[1])], next: 'cursor' } };
    answers['/admin/calls?limit=200&after=cursor'] = { body: { items: [call(ids[0])] } };
    expect((await berth(['explain', ids[0].slice(0, 12), '--url', url])).out).toBe('Because it fits.\n');
  });

  it.each([
    [['explain', '01a2'], 1, /2 calls start with "01a2"; write more of the id:\n {2}01a22b80-83c8/],
    [['explain', 'ffff'], 1, /None of the last 2 calls starts with "ffff"/],
    [['keys', 'burn'], 2, /Write `berth keys/],
    [['keys', 'create'], 2, /Write `berth keys create NAME/],
    [['settings', 'set', 'x'], 2, /Write `berth settings set NAME VALUE/],
    [['explain'], 2, /Write `berth explain CALL/],
    [['status', 'now'], 2, /Write `berth status/],
    [['status', '--jsn'], 2, /did you mean --json\?/],
    [['models'], 1, /No \/admin\/models\./],
  ])('refuse %j with exit code %i', async (args, exitCode, words) => {
    const { code, out, err } = await berth([...args, '--url', url]);
    expect([code, out]).toEqual([exitCode, '']);
    expect(err).toMatch(words);
  });

  it('say what to do when nothing answers, or something else does', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const nobody = await berth(['status', '--url', `http://127.0.0.1:${port}`]);
    expect(nobody.code).toBe(1);
    expect(unwrapped(nobody.err)).toMatch(
      /Nothing answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\).*`berth up`.*--url/,
    );
    answers['/health'] = { body: '<html>' };
    expect(unwrapped((await berth(['status', '--url', url])).err)).toMatch(/is not Berth .*--url/);
  });
});
