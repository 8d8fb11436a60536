import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperatorAccepted, OperatorItem, PullItem, ResidentItem, WirePage } from '#domain/wire/index.js';
import { packageRoot } from '#runtime/process-info.js';
import { LiveListener } from '../../apps/api/src/testing/live-listener.js';
import { expectInvariants } from '../support/log.js';
import { cleanEnv, removeFolder, startStack, type Stack, writeModels } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const WITHIN_MS = 60_000;

/** What is used of a hub, for one repository with one file. */
class OneFileHub {
  content = Buffer.alloc(0);
  readonly #server = createServer((request, response) => {
    if (request.url?.startsWith('/api/') !== true) {
      response.writeHead(200, { 'content-length': this.content.length }).end(this.content);
      return;
    }
    const sha256 = createHash('sha256').update(this.content).digest('hex');
    const size = this.content.length;
    const lfs = { oid: sha256, size, pointerSize: 134 };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify([{ type: 'file', path: 'ship-Q4_K_M.gguf', size, oid: 'a', lfs }]));
  });

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

describe('what an operator asks of a running Berth', () => {
  let stack: Stack;

  const hub = new OneFileHub();
  let endpoint: Promise<string>;

  beforeAll(async () => {
    endpoint = hub.start();
    stack = await startStack({
      env: { HF_ENDPOINT: await endpoint },
      models: { 'quay/one': { preset: 'smoke', seed: 1 }, 'quay/two': { preset: 'smoke', seed: 2 } },
    });
  });
  afterAll(async () => {
    await stack.stop();
    await expectInvariants(stack.home);
    removeFolder(stack.home);
    hub.stop();
  });

  const ask = async (body: object, key?: string) => {
    const response = await fetch(`${stack.url}/admin/operator/actions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      body: JSON.stringify(body),
    });
    return {
      status: response.status,
      body: (await response.json()) as OperatorAccepted & { detail?: string; code?: string },
    };
  };
  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${stack.url}${path}`)).json()) as T;
  const ended = ({ actionId }: OperatorItem): Promise<OperatorItem> =>
    waitFor(`the end of action ${actionId}`, WITHIN_MS, async () => {
      const action = await get<OperatorItem>(`/admin/operator/actions/${actionId}`);
      return action.endedAt !== undefined && action;
    });
  const residents = async () => (await get<WirePage<ResidentItem>>('/admin/residents')).items;
  /** In the environment of the command alone. */
  let own: Record<string, string> = {};
  const berth = (...args: string[]) =>
    new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
      const child = spawn(
        process.execPath,
        [join(packageRoot(), 'bin/berth'), ...args, '--home', stack.home],
        {
          env: { ...cleanEnv(stack.home), ...own },
        },
      );
      let [out, err] = ['', ''];
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
      child.on('close', (code) => resolve({ code, out, err }));
    });

  it('loads a model once, however often it is asked for, and tells of it as it goes', async () => {
    const live = await new LiveListener(stack.url).subscribe(['operator', 'residents']);
    await live.snapshot('operator');
    const wanted = { action: 'load', target: 'one', options: 'ctx=512' };
    const [first, again] = await Promise.all([ask(wanted, 'once'), ask(wanted, 'once')]);
    expect([first.status, again.status]).toEqual([202, 202]);
    expect(again.body.actionId).toBe(first.body.actionId);
    expect(await ended(first.body)).toMatchObject({
      state: 'done',
      action: 'load',
      target: 'quay/one@ctx=512',
      by: 'local',
      result: expect.stringMatching(
        /^quay\/one \(F16, ram-only, context 512, .* on ram\) is loaded after /,
      ) as string,
    });
    expect((await ask(wanted, 'once')).body).toMatchObject({ actionId: first.body.actionId, state: 'done' });
    expect(await ask({ action: 'evict-all' }, 'once')).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    });
    const decisions = await get<WirePage<{ cause: string; modelKey: string }>>('/admin/decisions');
    expect(decisions.items).toMatchObject([{ cause: 'operator', modelKey: 'quay/one' }]);
    await live.heardOf('operator', 'the end of the load', (action) => action.state === 'done');
    const states = live.changes.flatMap((c) => (c.topic === 'operator' ? [c.item.state] : []));
    expect(states).toEqual(['requested', 'running', 'done']);
    await live.leave();
    // It is there: the same again, under no key, is another action with nothing to do.
    const third = await ended((await ask({ action: 'load', target: 'quay/one@ctx=512' })).body);
    expect(third.result).toContain('was loaded already');
  });

  it('evicts what is named, from the command line too, and says what it held', async () => {
    const [resident] = await residents();
    const told = await berth('operator', 'evict', resident?.residentId ?? '');
    expect(told).toMatchObject({ code: 0, err: '' });
    expect(told.out).toMatch(/quay\/one left after .*; it held .* on ram\./);
    expect(await residents()).toEqual([]);
    const evictions = await get<WirePage<object>>('/admin/evictions');
    expect(evictions.items).toMatchObject([{ reason: 'operator', state: 'done' }]);
    const gone = await berth('operator', 'evict', resident?.residentId ?? '');
    expect(gone.code).toBe(1);
    expect(gone.err).toContain('There is no resident');
    expect((await stack.chat('quay/one')).status).toBe(200);
    expect((await stack.chat('quay/two')).status).toBe(200);
    const all = await ended((await ask({ action: 'evict-all' })).body);
    expect(all).toMatchObject({ state: 'done', result: expect.stringContaining('2 unloaded') as string });
  });

  it('starts the agent again under a resident that goes on serving', async () => {
    expect((await stack.chat('quay/one')).status).toBe(200);
    const before = stack.pidOf('agent');
    const asked = await ask({ action: 'restart-agent' });
    const answered = await stack.chat('quay/one');
    expect(answered.status).toBe(200);
    expect(await ended(asked.body)).toMatchObject({
      state: 'done',
      result: expect.stringContaining('1 engines went on') as string,
    });
    expect(stack.pidOf('agent')).not.toBe(before);
    expect((await residents()).map(({ modelKey, phase }) => [modelKey, phase])).toEqual([
      ['quay/one', 'ready'],
    ]);
  });

  it('finds new models, and removes one with its files when nothing holds it', async () => {
    await writeModels(stack.home, { 'quay/three': { preset: 'smoke', seed: 3 } });
    const found = await waitFor('the agent takes actions again', WITHIN_MS, async () => {
      const asked = await ask({ action: 'refresh-models' });
      return asked.status === 202 && asked.body;
    });
    expect((await ended(found)).result).toMatch(/models are on this machine/);
    const loaded = await ask({ action: 'remove-model', target: 'quay/one' });
    expect(loaded).toMatchObject({ status: 409, body: { code: 'conflict' } });
    expect(loaded.body.detail).toMatch(/quay\/one is loaded \(resident .*\)\. Evict it first/);
    const file = join(stack.home, 'models/quay/three/three-F16.gguf');
    const bytes = statSync(file).blocks * 512;
    const told = await berth('operator', 'remove-model', 'quay/three', '--json');
    expect(told.code).toBe(0);
    const end = JSON.parse(told.out) as OperatorItem;
    expect(end.result).toMatch(/quay\/three is gone: 1 files, \d.* freed; .* free on the drive/);
    expect(bytes).toBeGreaterThan(0);
    expect(existsSync(join(stack.home, 'models/quay/three'))).toBe(false);
    await waitFor('the model is gone from the list', WITHIN_MS, async () => {
      const models = await get<WirePage<{ modelKey: string }>>('/admin/models');
      return !models.items.some(({ modelKey }) => modelKey === 'quay/three');
    });
    const list = await berth('operator');
    expect(list.out.split('\n')[0]).toMatch(/^asked +action +target +state +result/);
  });

  it('fetches through the agent, tells the log of each file, and of what cannot be had', async () => {
    const source = join(stack.home, 'models/quay/two/two-F16.gguf');
    hub.content = readFileSync(source);
    const told = await berth('pull', 'acme/ship-GGUF');
    expect([told.code, told.err]).toEqual([0, expect.stringContaining('The agent fetches acme/ship-GGUF')]);
    expect(readFileSync(join(stack.home, 'models/acme/ship-GGUF/ship-Q4_K_M.gguf')).equals(hub.content)).toBe(
      true,
    );
    const { items } = await get<WirePage<PullItem>>('/admin/pulls');
    expect(items).toMatchObject([
      {
        state: 'finished',
        source: 'acme/ship-GGUF',
        pulledBytes: hub.content.length,
        files: [{ file: 'ship-Q4_K_M.gguf', bytes: hub.content.length, resumedFromBytes: 0 }],
      },
    ]);
    await waitFor('the model can be called', WITHIN_MS, async () => {
      const models = await get<WirePage<{ modelKey: string }>>('/admin/models');
      return models.items.some(({ modelKey }) => modelKey === 'acme/ship-GGUF');
    });
    const none = await berth('pull', 'acme/ship-GGUF:Q9');
    expect(none.code).toBe(1);
    expect(none.err).toContain('acme/ship-GGUF has no "Q9"');
    expect((await get<WirePage<PullItem>>('/admin/pulls?state=refused')).items).toHaveLength(1);
  });

  it("keeps an admin's limit of the disk, whoever fetches", async () => {
    const { items } = await get<WirePage<{ workerId: string; diskLimitBytes?: number }>>('/admin/workers');
    const limit = async (value: number | null) => {
      const response = await fetch(`${stack.url}/admin/workers/${items[0]?.workerId}/limits`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ resource: 'disk', value }),
      });
      return { status: response.status, body: (await response.json()) as { position: string } };
    };
    expect(await limit(Number.MAX_SAFE_INTEGER)).toMatchObject({
      status: 422,
      body: { code: 'limit_above_parent', tier: 'device' },
    });
    const { position } = (await limit(1)).body;
    expect((await get<typeof items>(`/admin/workers?wait=${position}`)) as unknown).toMatchObject({
      items: [{ diskLimitBytes: 1 }],
    });
    const throughAgent = await berth('pull', 'acme/other-GGUF');
    own = { HF_ENDPOINT: await endpoint };
    const byItself = await berth('pull', 'acme/other-GGUF');
    own = {};
    for (const { code, err } of [throughAgent, byItself]) {
      expect([code, err.replace(/\s+/g, ' ')]).toEqual([
        1,
        expect.stringContaining('the limit set by an admin is 1 B.'),
      ]);
    }
    expect(byItself.err).not.toContain('The agent fetches');
    expect(existsSync(join(stack.home, 'models/acme/other-GGUF/ship-Q4_K_M.gguf'))).toBe(false);
    expect((await limit(null)).status).toBe(200);
  });

  it('says what is wrong with what cannot be asked', async () => {
    for (const [body, status, words] of [
      [{ action: 'explode' }, 400, 'action must be one of'],
      [{ action: 'load' }, 400, 'load needs a model'],
      [{ action: 'load', target: 'quay/onne' }, 404, 'Nearest: "quay/one"'],
      [{ action: 'evict', target: 'nobody' }, 404, 'There is no resident nobody'],
      [{ action: 'restart-agent', worker: 'elsewhere' }, 404, 'There is no one worker "elsewhere"'],
      [{ action: 'refresh-models', target: 'x' }, 400, 'takes no target'],
    ] as const) {
      const answer = await ask(body);
      expect([body, answer.status]).toEqual([body, status]);
      expect(answer.body.detail).toContain(words);
    }
  });
});
