import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { MIB } from '#domain/units.js';
import { checkInvariants } from '#events/check/invariants.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { agentLineToken } from '#runtime/secrets.js';
import { foundModel, ScriptedAgent } from '../../apps/api/src/testing/scripted-agent.js';
import { ScriptedEngine } from '../../apps/api/src/testing/scripted-engine.js';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { type ApiProcess, startApiProcess } from '../support/api-process.js';
import { expectInvariants, readWholeLog } from '../support/log.js';
import { removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const APIS = 4;
const CALLS = 200;
const MODELS = Array.from({ length: 12 }, (_, n) => `fleet/model-${n}`);
const RAM_LIMIT_BYTES = 900 * MIB;
const SLOTS = 4;

interface Answer {
  readonly status: number;
  readonly said: string;
}

async function ask(url: string, model: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 }),
  });
  const body = (await response.json()) as { choices?: { message: { content: string } }[]; error?: unknown };
  return { status: response.status, said: body.choices?.[0]?.message.content ?? JSON.stringify(body.error) };
}

const largest = (held: ReadonlyMap<string, number>, before: number): number =>
  Math.max(
    before,
    [...held.values()].reduce((sum, bytes) => sum + bytes, 0),
  );

/**
 * The most that was ever promised together (from a decision on, its victims left out) and the most that was ever loaded
 * together (from the start of a load until its eviction had ended).
 */
function mostHeld(events: readonly Recorded<BerthEvent>[]): { promised: number; loaded: number } {
  const needs = new Map<string, number>();
  const promised = new Map<string, number>();
  const loaded = new Map<string, number>();
  const most = { promised: 0, loaded: 0 };
  for (const { event } of events) {
    if (event.type === 'PlacementDecided') {
      const { residentId, need, victims } = event.data;
      for (const victim of victims) promised.delete(victim.residentId);
      const bytes = need.reduce((sum, of) => sum + (of.bytes ?? 0), 0);
      needs.set(residentId, bytes);
      promised.set(residentId, bytes);
    } else if (event.type === 'LoadStarted') {
      loaded.set(event.data.residentId, needs.get(event.data.residentId) ?? Infinity);
    } else if (event.type === 'ResidentReady') {
      // From here on it is charged for what was measured.
      const { byDevice } = event.data.measured;
      const bytes = byDevice.reduce((sum, of) => sum + of.weightsBytes + of.kvBytes + of.computeBytes, 0);
      for (const held of [promised, loaded]) {
        if (held.has(event.data.residentId)) held.set(event.data.residentId, bytes);
      }
    } else if (event.type === 'ResidentEvicted' || event.type === 'LoadFailed') {
      promised.delete(event.data.residentId);
      loaded.delete(event.data.residentId);
    }
    most.promised = largest(promised, most.promised);
    most.loaded = largest(loaded, most.loaded);
  }
  return most;
}

describe('four apis on one log, with simulated engines and room for a third of the models', () => {
  let home: string;
  let node: EmbeddedNode;
  let log: EventLog;
  let agent: ScriptedAgent;
  const apis: ApiProcess[] = [];
  const engines: ScriptedEngine[] = [];
  const loaded = new Set<string>();
  const faults: string[] = [];
  const onEngine = new Map<string, number>();

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'berth-apis-'));
    node = await startEmbeddedNode();
    log = openEventLog({ url: node.url, by: 'test', now: Date.now });
    for (const key of MODELS) {
      const engine = new ScriptedEngine(async ({ body, res }) => {
        const { model } = JSON.parse(body.toString()) as { model: string };
        if (model !== key || !loaded.has(key)) faults.push(`the engine of ${key} was asked for ${model}`);
        const calls = (onEngine.get(key) ?? 0) + 1;
        onEngine.set(key, calls);
        if (calls > SLOTS)
          faults.push(`${calls} calls were on the engine of ${key}, which has ${SLOTS} slots`);
        // Long enough for calls of several apis to meet.
        await new Promise((resolve) => setTimeout(resolve, 10));
        onEngine.set(key, (onEngine.get(key) ?? 1) - 1);
        const answer = JSON.stringify({
          choices: [{ index: 0, message: { role: 'assistant', content: key } }],
        });
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
        res.end(answer);
      });
      engines.push(await engine.start());
    }
    agent = await new ScriptedAgent({
      log,
      token: agentLineToken(home),
      models: MODELS.map((key) => foundModel(key)),
      portOf: (key) => engines[MODELS.indexOf(key)]?.port ?? 0,
      ramLimitBytes: RAM_LIMIT_BYTES,
      slots: SLOTS,
      whileLoading: async ({ modelKey }) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        loaded.add(modelKey);
      },
      onStopped: (key) => loaded.delete(key),
    }).start();
    apis.push(...(await Promise.all(Array.from({ length: APIS }, () => startApiProcess(home, node.url)))));
    await waitFor('every api has a line to the agent', 30_000, () => agent.lines === APIS);
  }, 120_000);
  afterAll(async () => {
    for (const api of apis) await api.stop();
    await agent.stop();
    for (const engine of engines) engine.die();
    await log.close();
    await node.stop();
    removeFolder(home);
  });

  it(
    'answers 200 cold calls at once to 12 models, each by its own model, gives no room away twice, and no slot',
    { timeout: 240_000 },
    async () => {
      const wanted = Array.from({ length: CALLS }, (_, n) => MODELS[(n * 7) % MODELS.length] ?? '');
      const answers = await Promise.all(
        // Every model is asked for through every api.
        wanted.map((model, n) =>
          ask(apis[Math.floor(n / MODELS.length) % APIS]?.url ?? '', model, { 'x-session-id': `s${n % 20}` }),
        ),
      );
      expect(answers).toEqual(wanted.map((said) => ({ status: 200, said })));
      expect(faults).toEqual([]);
      const events = await readWholeLog(log);
      const most = mostHeld(events);
      expect(most.promised).toBeLessThanOrEqual(RAM_LIMIT_BYTES);
      expect(most.loaded).toBeLessThanOrEqual(RAM_LIMIT_BYTES);
      // The limit was needed: there was room for several, and not for all.
      expect(most.loaded).toBeGreaterThan(RAM_LIMIT_BYTES / 2);
      const decisions = events.filter(({ event }) => event.type === 'PlacementDecided');
      // Conflicts are retried and not lost; and calls to one model share its load, whichever api took them.
      expect(decisions.length).toBeGreaterThanOrEqual(MODELS.length);
      expect(decisions.length).toBeLessThan(CALLS / 2);
      expect(new Set(decisions.map(({ metadata }) => metadata.by)).size).toBeGreaterThan(1);
    },
  );

  it('leaves a log in which every invariant holds and every call has one end', async () => {
    await Promise.all(apis.map((api) => api.stop()));
    expect(await checkInvariants(log, { atRest: true })).toEqual([]);
    const ends = (await readWholeLog(log)).flatMap(({ event }) =>
      event.type === 'CallFinished' ? [`${event.data.callId} ${event.data.outcome}`] : [],
    );
    expect(ends).toHaveLength(CALLS);
    expect(new Set(ends).size).toBe(CALLS);
    expect(ends.every((end) => end.endsWith('completed'))).toBe(true);
  });
});

describe('four apis on one log, with real engines and room for one of two models', () => {
  let stack: Stack;
  const apis: ApiProcess[] = [];
  const models = ['quay/first', 'quay/second'] as const;

  beforeAll(async () => {
    stack = await startStack({
      ramMax: '420MiB',
      models: {
        [models[0]]: { preset: 'big', sizeMb: 160, seed: 1 },
        [models[1]]: { preset: 'big', sizeMb: 160, seed: 2 },
      },
    });
    const url = readFileSync(join(stack.home, 'event-node', 'connection'), 'utf8').trim();
    for (let n = 1; n < APIS; n += 1) apis.push(await startApiProcess(stack.home, url));
  }, 180_000);
  afterAll(async () => {
    for (const api of apis) await api.stop();
    await stack.stop();
    removeFolder(stack.home);
  });

  it(
    'answers cold calls to both through every api, each by its own model',
    { timeout: 180_000 },
    async () => {
      const urls = [stack.url, ...apis.map((api) => api.url)];
      const wanted = Array.from({ length: 8 }, (_, n) => ({ url: urls[n % APIS] ?? '', seed: (n >> 2) + 1 }));
      const answers = await Promise.all(wanted.map(({ url, seed }) => ask(url, models[seed - 1] ?? '')));
      const expected = wanted.map(({ seed }) => expectedText('big', seed).text);
      expect(answers.map(({ status }) => status)).toEqual(wanted.map(() => 200));
      expect(answers.map(({ said }, n) => expected[n]?.startsWith(said))).toEqual(wanted.map(() => true));
    },
  );

  it(
    'leaves a log in which every invariant holds and nothing failed to load',
    { timeout: 120_000 },
    async () => {
      for (const api of apis) await api.stop();
      expect(await stack.stop()).toBe(0);
      const events = await expectInvariants(stack.home);
      expect(events.filter(({ event }) => event.type === 'LoadFailed')).toEqual([]);
    },
  );
});
