import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, DataOf, Recorded } from '#domain/events/index.js';
import { KV_TYPES, RUNGS } from '#domain/placement-terms.js';
import { MIB } from '#domain/units.js';
import type { DeviceItem, ResidentItem, VerdictItem, WhatIfItem } from '#domain/wire/index.js';
import { packageRoot } from '#runtime/process-info.js';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { expectInvariants, expectReproduced, openLogOf, readWholeLog } from '../support/log.js';
import { cleanEnv, removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

/** How far a load's prediction was from what it took, in parts of what it took. */
function errorOf({ byDevice, predictedByDevice }: DataOf<'LoadMeasured'>) {
  const measured = byDevice.reduce(
    (sum, d) => sum + d.weightsBytes + d.kvBytes + d.computeBytes + d.processBytes,
    0,
  );
  const predicted = predictedByDevice.reduce((sum, d) => sum + d.bytes, 0);
  return { measured, predicted, error: Math.abs(measured - predicted) / measured };
}

// Two models of which only one fits: 160 MB of weights each, and a limit that holds one with its process.
const RAM_MAX = '420MiB';

describe('evicting to fit', () => {
  let stack: Stack;

  beforeAll(async () => {
    stack = await startStack({
      ramMax: RAM_MAX,
      models: {
        'quay/first': { preset: 'big', sizeMb: 160, seed: 1 },
        'quay/second': { preset: 'big', sizeMb: 160, seed: 2 },
      },
    });
  });
  afterAll(async () => {
    await stack.stop();
    removeFolder(stack.home);
  });

  const says = async (model: string): Promise<string> => {
    const response = await stack.chat(model);
    const body = (await response.json()) as { choices?: { message: { content: string } }[]; error?: unknown };
    if (!response.ok) throw new Error(`${String(response.status)}: ${JSON.stringify(body.error)}`);
    return body.choices![0]!.message.content;
  };
  const first = expectedText('big', 1).text;
  const second = expectedText('big', 2).text;

  const events = async (): Promise<readonly Recorded<BerthEvent>[]> => {
    const log = openLogOf(stack.home);
    try {
      return await readWholeLog(log);
    } finally {
      await log.close();
    }
  };
  const items = async <Item>(path: string): Promise<readonly Item[]> =>
    ((await (await fetch(`${stack.url}/admin/${path}`)).json()) as { items: readonly Item[] }).items;
  const verdicts = (model: string) => items<VerdictItem>(`models/${encodeURIComponent(model)}/verdicts`);
  const residents = () => items<ResidentItem>('residents');
  const count = (all: readonly Recorded<BerthEvent>[], type: string) =>
    all.filter((e) => e.event.type === type).length;

  it('evicts the first for the second, and brings it back', async () => {
    expect(await says('quay/first')).toBe(first);
    expect(await says('quay/second')).toBe(second);
    expect(await says('quay/first')).toBe(first);
    const all = await events();
    expect(count(all, 'PlacementDecided')).toBe(3);
    expect(count(all, 'ResidentEvicted')).toBe(2);
    expect(count(all, 'EvictionFailed')).toBe(0);
    expect(count(all, 'DecisionClosed')).toBe(0);
  });

  it('sizes the first load by the engine and the later ones by what was measured', async () => {
    const decisions = (await events()).flatMap((e) =>
      e.event.type === 'PlacementDecided' ? [e.event.data] : [],
    );
    expect(decisions[0]!.need.some((n) => n.basis === 'projected')).toBe(true);
    const again = decisions[2]!;
    expect(again.modelKey).toBe('quay/first');
    expect(again.need.every((n) => n.basis === 'measured' && n.fromEvent !== undefined)).toBe(true);
    expect(again.victims.map((v) => v.modelKey)).toEqual(['quay/second']);
  });

  it('answers two calls at once to two models of which one fits', async () => {
    const [a, b] = await Promise.all([says('quay/first'), says('quay/second')]);
    expect([a, b]).toEqual([first, second]);
  });

  it('answers many calls at once to both, each by its own model', async () => {
    const wanted = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? 'quay/first' : 'quay/second'));
    const answers = await Promise.all(wanted.map(says));
    expect(answers).toEqual(wanted.map((model) => (model === 'quay/first' ? first : second)));
  });

  it('predicts what a class takes to within 1 % once it was loaded twice, and shows how well', async () => {
    const loads = async () =>
      (await events()).flatMap(({ stream, event }) =>
        event.type === 'LoadMeasured' ? [{ stream, ...errorOf(event.data) }] : [],
      );
    const ofFirst = async () => (await loads()).filter(({ stream }) => stream.endsWith('quay/first'));
    while ((await ofFirst()).length < 4) {
      await says('quay/second');
      await says('quay/first');
    }
    const all = await loads();
    for (const pair of new Set(all.map(({ stream }) => stream))) {
      for (const { error, measured, predicted } of all.filter((l) => l.stream === pair).slice(2)) {
        expect(error, `${pair}: ${predicted} predicted, ${measured} measured`).toBeLessThanOrEqual(0.01);
      }
    }
    const shown = await waitFor('the view has every load', 20_000, async () => {
      const { items } = (await (await fetch(`${stack.url}/admin/accuracy?model=quay/first`)).json()) as {
        items: readonly { loads: number; meanError: number; worstError: number; engineBuild: string }[];
      };
      return items[0]?.loads === all.filter((l) => l.stream.endsWith('quay/first')).length
        ? items
        : undefined;
    });
    const errors = all.filter((l) => l.stream.endsWith('quay/first')).map((l) => l.error);
    expect(shown).toHaveLength(1);
    // The view keeps millionths.
    expect(shown[0]?.worstError).toBeCloseTo(Math.max(...errors), 5);
    expect(shown[0]?.meanError).toBeCloseTo(errors.reduce((a, b) => a + b, 0) / errors.length, 5);
    expect(shown[0]?.engineBuild).not.toBe('');
  });

  it('tells beforehand whether a model fits, whom it would cost, what it takes and how fast it would be', async () => {
    expect(await says('quay/first')).toBe(first);
    const items = await verdicts('quay/second');
    // One for each way to place it and each type of its KV cache.
    const ways = new Set(items.map(({ artifact, rung, kvType }) => `${artifact} ${rung} ${kvType}`));
    expect([ways.size, items.length]).toEqual([RUNGS.length * KV_TYPES.length, ways.size]);
    const inRam = items.find(({ rung, fits }) => rung === 'ram-only' && fits === 'evicting')!;
    const resident = (await residents()).find(({ modelKey }) => modelKey === 'quay/first');
    expect(inRam).toMatchObject({
      workerId: resident?.workerId,
      workerName: expect.any(String) as string,
      modelKey: 'quay/second',
      artifact: 'F16',
      kvType: 'f16',
      contextTokens: 4096,
      context: { state: expect.stringMatching(/^[a-z-]+$/) as string },
      evicting: [{ residentId: resident?.residentId, modelKey: 'quay/first' }],
      reason: 'fits after evicting quay/first',
    });
    expect(inRam.context?.ceilingTokens).toBeGreaterThanOrEqual(4096);
    expect(inRam.cores).toBeGreaterThanOrEqual(1);
    const [need] = inRam.need;
    const [room] = inRam.room;
    expect([need?.deviceId, room?.deviceId, need?.basis]).toEqual(['ram', 'ram', 'measured']);
    expect(need!.bytes).toBeGreaterThan(160_000_000);
    expect(room!.bytes).toBeLessThan(need!.bytes);
    expect(inRam.predicted.loadSeconds).toBeGreaterThan(0);
    expect(inRam.predicted.outputTokensPerSecond).toBeGreaterThan(0);
    expect(inRam.predicted.promptTokensPerSecond).toBeGreaterThan(0);
    // No accelerator is here: what needs one is told, with the reason.
    expect(items.find(({ rung }) => rung === 'gpu-only')).toMatchObject({
      fits: 'never',
      reason: expect.stringMatching(/accelerator/) as string,
    });
    const unknown = await fetch(`${stack.url}/admin/models/quay%2Fthird/verdicts`);
    expect(unknown.status).toBe(404);
    // With nobody there it fits at once, and costs nobody.
    await fetch(`${stack.url}/admin/residents/${resident?.residentId}/evict`, { method: 'POST' });
    const alone = await waitFor('it fits now', 60_000, async () =>
      (await verdicts('quay/second')).find(({ rung, fits }) => rung === 'ram-only' && fits === 'now'),
    );
    expect(alone.evicting).toEqual([]);
    expect(alone.room[0]!.bytes).toBeGreaterThanOrEqual(alone.need[0]!.bytes);
  });

  it('refuses what can never fit with the need and the limit, and evicts nobody for it', async () => {
    const before = count(await events(), 'EvictionStarted');
    const response = await stack.chat('quay/first@ctx=1000000');
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(response.status).toBeLessThan(500);
    const { error } = (await response.json()) as { error: { message: string; code: string } };
    expect(error.message.length).toBeGreaterThan(20);
    expect(count(await events(), 'EvictionStarted')).toBe(before);
  });

  it('says what more memory would have saved, beside what happened and the least possible', async () => {
    const berth = [join(packageRoot(), 'bin/berth'), 'what-if', '--home', stack.home, '--json'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...berth, '--last', '1h', '--ram-max', '2GiB'],
      { env: cleanEnv(stack.home) },
    ).catch((error: unknown) => error as { stdout: string });
    const { error, report } = JSON.parse(stdout) as WhatIfItem;
    expect(error).toBeUndefined();
    const { calls, reproduced, really, asItWas, changes, least, sentence } = report!;
    expect(calls).toBeGreaterThanOrEqual(13);
    expect(
      reproduced.identical / reproduced.decisions,
      JSON.stringify(reproduced.differences),
    ).toBeGreaterThanOrEqual(0.99);
    expect(really.loads).toBe(count(await events(), 'ResidentReady'));
    // Real loads and calls do not take to the millisecond what they take here: a load more or less is the same.
    expect(Math.abs(asItWas.loads - really.loads)).toBeLessThanOrEqual(2);
    expect(changes[0]!.name).toBe('RAM 2 GiB');
    expect(changes[0]!.figures).toMatchObject({ loads: 2, evictions: 0 });
    expect(least.atOnceSeconds! + least.delayedSeconds!).toBeGreaterThan(0);
    expect(sentence).toMatch(
      /^You were at .*least loading possible; .* more RAM would have saved \d+ % of the loads\.$/,
    );
  });

  it('takes a lower limit while it runs, and none above what it was started with', async () => {
    const [worker] = await items<{ workerId: string }>('workers');
    const patch = async (body: object, id = worker?.workerId) => {
      const answer = await fetch(`${stack.url}/admin/workers/${id}/limits`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const { code, detail, position } = (await answer.json()) as Record<string, string | undefined>;
      return { status: answer.status, code, detail, position };
    };
    const limit = (value: number | null) => patch({ resource: 'ram', value });
    expect(await limit(421 * MIB)).toMatchObject({ status: 422, code: 'limit_above_parent' });
    expect(await patch({ resource: 'card', value: 1 })).toMatchObject({
      status: 400,
      detail: 'The worker has no "card". It has ram, disk, cores.',
    });
    expect(await patch({ resource: 'ram', value: -1 })).toMatchObject({ status: 400 });
    expect(await patch({ resource: 'ram', value: 1 }, 'nobody')).toMatchObject({ status: 404 });
    const lower = await limit(200 * MIB);
    expect(lower).toMatchObject({ status: 200, position: expect.stringMatching(/^\d+$/) as string });
    // What stands so already is not written again.
    expect(await limit(200 * MIB)).toMatchObject({ status: 200, position: undefined });
    const [read] = await items<{ devices: readonly DeviceItem[] }>(`workers?wait=${lower.position}`);
    expect(read?.devices.find(({ deviceId }) => deviceId === 'ram')?.limitBytes).toBe(200 * MIB);
    const inRam = (await verdicts('quay/second')).filter(({ rung }) => rung === 'ram-only');
    expect(inRam.find(({ kvType }) => kvType === 'f16')).toMatchObject({
      fits: 'never',
      reason: expect.stringMatching(/200\.0 MiB/) as string,
    });
    const refused = await stack.chat('quay/second');
    expect(await refused.text()).toMatch(/200\.0 MiB/);
    expect(await limit(null)).toMatchObject({ status: 200 });
    expect(await says('quay/second')).toBe(second);
  });

  it('leaves a log in which every invariant holds, and from which each decision can be made again', async () => {
    expect(await stack.stop()).toBe(0);
    expectReproduced(await expectInvariants(stack.home));
  });
});
