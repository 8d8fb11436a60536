import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, BerthEventType, DataOf } from '#domain/events/index.js';
import { expectInvariants, openLogOf, readWholeLog } from '../support/log.js';
import { removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const WITHIN_MS = 30_000;

describe('residents that are looked after with nobody asking', () => {
  let stack: Stack;

  beforeAll(async () => {
    stack = await startStack({
      models: {
        'quay/one': { preset: 'smoke', seed: 1 },
        'quay/two': { preset: 'smoke', seed: 2 },
        'quay/endless': 'endless',
      },
    });
  });
  afterAll(async () => {
    await stack.stop();
    await expectInvariants(stack.home);
    removeFolder(stack.home);
  });

  const told = async <T extends BerthEventType>(type: T): Promise<readonly DataOf<T>[]> => {
    const log = openLogOf(stack.home);
    try {
      return (await readWholeLog(log))
        .map(({ event }): BerthEvent => event)
        .filter((event): event is Extract<BerthEvent, { type: T }> => event.type === type)
        .map((event) => event.data as DataOf<T>);
    } finally {
      await log.close();
    }
  };
  const eventually = <T>(what: string, look: () => Promise<T | undefined>) => waitFor(what, WITHIN_MS, look);
  const loaded = async (): Promise<readonly string[]> => {
    const { models } = (await (await fetch(`${stack.url}/api/ps`)).json()) as { models: { name: string }[] };
    return models.map(({ name }) => name).sort();
  };
  const ollama = async (body: Record<string, unknown>) => {
    const response = await fetch(`${stack.url}/api/generate`, {
      method: 'POST',
      body: JSON.stringify({ stream: false, options: { num_predict: 4 }, ...body }),
    });
    expect(response.status).toBe(200);
    return (await response.json()) as { done_reason: string };
  };
  const set = async (scope: string, patch: Record<string, unknown>) => {
    const response = await fetch(`${stack.url}/admin/settings${scope}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ values: patch }),
    });
    expect(response.status).toBeLessThan(300);
  };
  const unloads = async (model: string) =>
    (await told('UnloadDecided')).filter(({ modelKey }) => modelKey === model);

  it('unloads a model after a call that says so, as a decision and a drain in the log', async () => {
    await ollama({ model: 'quay/one', prompt: 'hello', keep_alive: 0 });
    const [evicted] = await eventually('the end of quay/one', async () => {
      const all = await told('ResidentEvicted');
      return all.length > 0 ? all : undefined;
    });
    const [decision] = await unloads('quay/one');
    expect(decision).toMatchObject({ idleUnloadSeconds: 0, saidBy: 'call' });
    expect(evicted).toMatchObject({
      residentId: decision?.residentId,
      decisionId: decision?.decisionId,
      reason: 'idle',
    });
    expect(await loaded()).toEqual([]);
  });

  it('answers that it unloads without loading, and unloads what is there', async () => {
    const loadsBefore = (await told('LoadStarted')).length;
    expect((await ollama({ model: 'quay/one', keep_alive: 0 })).done_reason).toBe('unload');
    expect((await told('LoadStarted')).length).toBe(loadsBefore);
    expect((await ollama({ model: 'quay/one', keep_alive: '10m' })).done_reason).toBe('load');
    expect(await loaded()).toEqual(['quay/one']);
    expect((await ollama({ model: 'quay/one', keep_alive: '0s' })).done_reason).toBe('unload');
    await eventually('nothing loaded', async () => ((await loaded()).length === 0 ? true : undefined));
  });

  it('unloads what is idle for longer than the settings say, and keeps what a call asked to be kept', async () => {
    await set('', { idleUnloadSeconds: 1 });
    await ollama({ model: 'quay/two', prompt: 'hello', keep_alive: -1 });
    await ollama({ model: 'quay/one', prompt: 'hello' });
    await eventually('the end of quay/one by the settings', async () =>
      (await unloads('quay/one')).some(({ saidBy, idleSeconds }) => saidBy === 'settings' && idleSeconds >= 1)
        ? true
        : undefined,
    );
    await eventually('quay/two alone', async () => {
      const now = await loaded();
      return now.length === 1 && now[0] === 'quay/two' ? true : undefined;
    });
    expect(await unloads('quay/two')).toEqual([]);
    await set('', { idleUnloadSeconds: null });
    await ollama({ model: 'quay/two', keep_alive: 0 });
  });

  it('reloads a resident with a larger context when an answer filled the one that it has', async () => {
    await set('', { growRoomSeconds: 1, growEverySeconds: 1 });
    expect((await stack.chat('quay/endless@ctx=512', 'go on', { max_tokens: 2 })).status).toBe(200);
    expect((await stack.chat('quay/endless', 'go on')).status).toBe(200);
    const [grown] = await eventually('a larger context', async () => {
      const all = await told('ContextGrown');
      return all.length > 0 ? all : undefined;
    });
    expect(grown).toMatchObject({ from: 512, to: 4096, cause: 'a call wanted 513 tokens' });
    const decision = (await told('PlacementDecided')).find((d) => d.residentId === grown?.residentId);
    expect(decision).toMatchObject({ cause: { kind: 'grow', fromTokens: 512, wantedTokens: 513 } });
    expect(decision?.victims.map((victim) => victim.modelKey)).toEqual(['quay/endless']);
    await ollama({ model: 'quay/endless', keep_alive: 0 });
  });

  it('loads what a worker is to have loaded, in its order, and keeps it though it idles', async () => {
    const worker = readFileSync(join(stack.home, 'worker-id'), 'utf8').trim();
    const before = (await told('PlacementDecided')).length;
    await set(`/${worker}`, { preload: ['quay/two', 'quay/one'], idleUnloadSeconds: 1 });
    await eventually('both loaded', async () => ((await loaded()).length === 2 ? true : undefined));
    const decisions = (await told('PlacementDecided')).slice(before);
    expect(decisions.map(({ modelKey, cause }) => [modelKey, cause.kind])).toEqual([
      ['quay/two', 'preload'],
      ['quay/one', 'preload'],
    ]);
  });
});
