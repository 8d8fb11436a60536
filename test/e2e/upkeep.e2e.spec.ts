import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, BerthEventType, DataOf } from '#domain/events/index.js';
import { expectInvariants, openLogOf, readWholeLog } from '../support/log.js';
import { removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const WITHIN_MS = 90_000;

describe('residents that are looked after with nobody asking', () => {
  let stack: Stack;

  beforeAll(async () => {
    stack = await startStack({
      models: {
        'quay/one': { preset: 'smoke', seed: 1 },
        'quay/two': { preset: 'endless', seed: 2 },
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
  const worker = () => readFileSync(join(stack.home, 'worker-id'), 'utf8').trim();
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
    const [measured] = await eventually('what the call measured', async () => {
      const all = await told('ServingMeasured');
      return all.length > 0 ? all : undefined;
    });
    expect(measured?.tokensHeld).toBeGreaterThan(4);
    expect(measured?.kvBytes).toBeGreaterThan(0);
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

  it('probes the contexts around the default after a call that tries the model, and then no more', async () => {
    const warmUp = () => stack.chat('quay/one', 'hello', { metadata: { intent: 'warmup' } });
    expect((await warmUp()).status).toBe(200);
    const probes = await eventually('a result of each', async () => {
      const all = await told('ContextProbed');
      return all.some(({ filledTokens }) => filledTokens !== undefined) ? all : undefined;
    });
    // The largest context of the model is its default: there is none above.
    expect(probes.map(({ contextTokens, ok }) => [contextTokens, ok])).toEqual([
      [6144, true],
      [8192, true],
    ]);
    expect(probes.at(-1)?.filledTokens).toBeGreaterThan(8192 - 100);
    const decisions = (await told('PlacementDecided')).length;
    expect((await warmUp()).status).toBe(200);
    await set('', { idleUnloadSeconds: 1 });
    await eventually('its end', async () => ((await loaded()).length === 0 ? true : undefined));
    await set('', { idleUnloadSeconds: null });
    expect((await told('PlacementDecided')).length).toBe(decisions);
  });

  it.skipIf(availableParallelism() < 2)(
    'binds engines to their cores, gives those of an idle one to others, and binds it anew when it serves again',
    async () => {
      const models = ['quay/endless', 'quay/two'];
      for (const model of models) await set(`/${worker()}~${model}`, { cpuCores: 1 });
      for (const model of models) expect((await stack.chat(model, 'go', { max_tokens: 2 })).status).toBe(200);
      const loads = (await told('LoadStarted')).slice(-2);
      expect(loads.map(({ modelKey }) => modelKey)).toEqual(models);
      expect(loads[0]?.cores).toHaveLength(1);
      expect(loads[1]?.cores).toEqual(loads[0]?.cores);
      const allowed = (pid = 0) =>
        /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      expect(loads.map(({ pid }) => allowed(pid))).toEqual(loads.map(({ cores }) => cores?.join(',')));
      const leave = new AbortController();
      try {
        for (const model of models) {
          const { body } = await fetch(`${stack.url}/v1/chat/completions`, {
            method: 'POST',
            signal: leave.signal,
            body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'go on' }] }),
          });
          await body?.getReader().read();
        }
        const [moved] = await eventually('other cores', async () => {
          const all = await told('CoresRepinned');
          return all.length > 0 ? all : undefined;
        });
        // The younger of the two has claimed them.
        expect(moved).toMatchObject({ residentId: loads[0]?.residentId, from: loads[0]?.cores });
        expect(moved?.to).not.toEqual(moved?.from);
        await eventually('its engine on them', async () =>
          Promise.resolve(allowed(loads[0]?.pid) === moved?.to.join(',') ? true : undefined),
        );
        expect(allowed(loads[1]?.pid)).toBe(loads[1]?.cores?.join(','));
      } finally {
        leave.abort();
      }
      for (const model of models) await set(`/${worker()}~${model}`, { cpuCores: null });
      for (const model of models) await ollama({ model, keep_alive: 0 });
      await eventually('the end of both', async () =>
        (await loaded()).some((model) => models.includes(model)) ? undefined : true,
      );
    },
  );

  it('loads what a worker is to have loaded, in its order, and keeps it though it idles', async () => {
    const before = (await told('PlacementDecided')).length;
    await set(`/${worker()}`, { preload: ['quay/two', 'quay/one'], idleUnloadSeconds: 1 });
    await eventually('both loaded', async () => ((await loaded()).length === 2 ? true : undefined));
    const decisions = (await told('PlacementDecided')).slice(before);
    expect(decisions.map(({ modelKey, cause }) => [modelKey, cause.kind])).toEqual([
      ['quay/two', 'preload'],
      ['quay/one', 'preload'],
    ]);
  });
});
