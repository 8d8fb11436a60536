import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { expectInvariants, openLogOf, readWholeLog } from '../support/log.js';
import { childrenOf, cleanEnv, processesOf, removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const sh = promisify(execFile);

describe('berth up on an empty machine', () => {
  let stack: Stack;

  const berth = async (...args: string[]): Promise<string> =>
    (
      await sh(process.execPath, [join(packageRoot(), 'bin', 'berth'), ...args], {
        env: { ...cleanEnv(stack.home), BERTH_HOME: stack.home, BERTH_PORT: new URL(stack.url).port },
      })
    ).stdout;

  beforeAll(async () => {
    stack = await startStack();
  });
  afterAll(async () => {
    await stack.stop();
    await expectInvariants(stack.home);
    removeFolder(stack.home);
  });

  it('says plainly that the model it wrote is a smoke model', () => {
    expect(stack.output()).toMatch(/smoke model/i);
  });

  it('prints a curl line that works as it stands', async () => {
    const line = /^\s*(curl .*(?:\\\n.*)*)$/m.exec(stack.output())?.[1];
    expect(line).toBeDefined();
    const { stdout } = await sh('sh', ['-c', line ?? 'false']);
    expect(stdout).toContain(expectedText('smoke').text);
  });

  it('answers the OpenAI client with only its base URL changed, streamed and not', async () => {
    const client = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: 'unused' });
    const models = await client.models.list();
    const model = models.data[0]!.id;
    const messages = [{ role: 'user' as const, content: 'Good morning' }];
    const whole = await client.chat.completions.create({ model, messages });
    expect(whole.choices[0]!.message.content).toBe(expectedText('smoke').text);
    expect(whole.choices[0]!.finish_reason).toBe('stop');
    expect(whole.usage!.completion_tokens).toBeGreaterThan(1);
    let text = '';
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe(expectedText('smoke').text);
  });

  it('placed the first call by a decision that stands in the log before anything was started', async () => {
    const log = openLogOf(stack.home);
    const events = await readWholeLog(log);
    await log.close();
    const order = events.map((e) => e.event.type);
    const at = (type: string) => order.findIndex((t) => t === type);
    expect(at('LogCreated')).toBe(0);
    expect(at('PlacementDecided')).toBeGreaterThan(at('ModelFound'));
    expect(at('LoadStarted')).toBeGreaterThan(at('PlacementDecided'));
    expect(at('ResidentReady')).toBeGreaterThan(at('LoadStarted'));
    expect(at('LoadMeasured')).toBeGreaterThan(at('ResidentReady'));
    expect(order.filter((t) => t === 'LoadStarted')).toHaveLength(1);
    const decided = events.find((e) => e.event.type === 'PlacementDecided');
    if (decided?.event.type !== 'PlacementDecided') throw new Error('no decision');
    expect(decided.event.data.need.length).toBeGreaterThan(0);
    expect(
      decided.event.data.need.some((term) => term.basis === 'projected' && term.fromEvent !== undefined),
    ).toBe(true);
    // The sizing of the first load was the engine's own: what it then took is what it had said.
    const measured = events.find((e) => e.event.type === 'LoadMeasured');
    const projected = events.find((e) => e.event.type === 'LoadProjected');
    if (measured?.event.type !== 'LoadMeasured' || projected?.event.type !== 'LoadProjected')
      throw new Error('not measured');
    const sizes = (d: { weightsBytes: number; kvBytes: number; computeBytes: number }) => [
      d.weightsBytes,
      d.kvBytes,
      d.computeBytes,
    ];
    expect(measured.event.data.byDevice.map(sizes)).toEqual(projected.event.data.byDevice.map(sizes));
  });

  it('carries no word of a prompt or an answer in any event', async () => {
    const secret = `zanzibar-${Date.now()}`;
    const { id } = ((await (await fetch(`${stack.url}/v1/models`)).json()) as { data: { id: string }[] })
      .data[0]!;
    expect((await stack.chat(id, secret)).status).toBe(200);
    const log = openLogOf(stack.home);
    const finished = await waitFor('the call is in the log', 10_000, async () => {
      const events = await readWholeLog(log);
      return events.filter((e) => e.event.type === 'CallFinished').length >= 4 ? events : undefined;
    });
    await log.close();
    const text = JSON.stringify(finished, (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    expect(text).not.toContain(secret);
    expect(text).not.toContain(expectedText('smoke').text.slice(0, 20));
  });

  it('shows what happened by berth status, berth models, berth explain and the admin lists', async () => {
    const lists = ['residents', 'models', 'calls', 'decisions', 'workers', 'evictions'];
    for (const list of lists) {
      const response = await fetch(`${stack.url}/admin/${list}`);
      expect([list, response.status]).toEqual([list, 200]);
      const { items } = (await response.json()) as { items: unknown[] };
      expect(Array.isArray(items)).toBe(true);
      if (list !== 'evictions') expect([list, items.length > 0]).toEqual([list, true]);
    }
    expect(await berth('status')).toMatch(/berth\/smoke/);
    expect(await berth('models')).toMatch(/berth\/smoke/);
    const { items } = (await (await fetch(`${stack.url}/admin/calls`)).json()) as {
      items: { callId: string }[];
    };
    const first = items.at(-1)!;
    const explained = await berth('explain', first.callId);
    expect(explained).toMatch(/ram-only/);
    expect(explained).toMatch(/weights/);
    expect(explained.split('\n').every((line) => line.length <= 100)).toBe(true);
  });

  it('proves its views, checks and copies the log while it is in use', async () => {
    const proven = await berth('replay', '--verify');
    expect(proven).toMatch(/^Every one of [\d,]+ rows is what [\d,]+ events give/m);
    expect(await berth('log', 'check')).toContain(
      'Every invariant holds. Every event has the form of its type.',
    );
    expect(await berth('log', 'verify')).toContain('The log is sound');
    expect(await berth('log', 'backup', join(stack.home, 'copy'))).toContain('Copied the log');
  });

  it('stops everything in order at Ctrl-C and leaves no process behind', async () => {
    const before = childrenOf(stack.process.pid!).map((p) => p.pid);
    expect(before.length).toBeGreaterThanOrEqual(5);
    expect(await stack.stop()).toBe(0);
    await waitFor('every process of the stack is gone', 10_000, () => processesOf(stack.home).length === 0);
    const left = before.filter((pid) =>
      processesOf('').some((p) => p.pid === pid && p.command.includes('berth')),
    );
    expect(left).toEqual([]);
    const events = await expectInvariants(stack.home);
    expect(events.map((e) => e.event.type)).toContain('ResidentEvicted');
  });

  it('starts again over the same home and knows what it measured', async () => {
    stack = await startStack({ home: stack.home });
    // Asked at once: management loads its code after the front door has opened, and holds who comes before.
    const [chat, residents] = await Promise.all([
      stack.chat('berth/smoke'),
      fetch(`${stack.url}/admin/residents`),
    ]);
    expect(chat.status).toBe(200);
    expect(residents.status).toBe(200);
    const log = openLogOf(stack.home);
    const events = await readWholeLog(log);
    await log.close();
    expect(events.filter((e) => e.event.type === 'LogCreated')).toHaveLength(1);
    expect(events.filter((e) => e.event.type === 'ModelFound')).toHaveLength(1);
    expect(events.filter((e) => e.event.type === 'WorkerRegistered')).toHaveLength(1);
    const second = events.filter((e) => e.event.type === 'PlacementDecided').at(-1);
    if (second?.event.type !== 'PlacementDecided') throw new Error('no decision');
    expect(second.event.data.need.every((term) => term.basis === 'measured')).toBe(true);
  });

  it('moves the counter of telemetry not once in a minute in which nothing happens, and on the next call', async () => {
    const state = async (since: string, seconds: number) =>
      (await (
        await fetch(`${stack.url}/admin/telemetry/state?since=${since}&seconds=${seconds}`)
      ).json()) as { position: string; changed: boolean };
    let { position } = await state('0', 0);
    await waitFor('the last call is written down', 60_000, async () => {
      const later = await state(position, 3);
      position = later.position;
      return !later.changed;
    });
    const began = position;
    const until = performance.now() + 60_000;
    let moved = 0;
    for (let left = 60; left > 0; left = Math.ceil((until - performance.now()) / 1000)) {
      const later = await state(position, left);
      if (later.changed) moved += 1;
      position = later.position;
    }
    const log = openLogOf(stack.home);
    const events = (await readWholeLog(log)).filter((e) => e.position.commit > BigInt(began));
    await log.close();
    // What other programs do to the machine is told, and what the start still measures: on an idle one there is none of it.
    const others = ['ForeignUseChanged', 'BusyCoresChanged', 'CapacityMeasured', 'ServingMeasured'];
    const readings = events.filter(({ stream }) => stream.startsWith('readings-'));
    const told = events.filter(({ stream }) => !stream.startsWith('readings-')).map((e) => e.event.type);
    expect(told.filter((type) => !others.includes(type))).toEqual([]);
    expect(moved).toBeLessThanOrEqual(told.length);
    // It looked at its devices all the while.
    expect(readings.length).toBeGreaterThanOrEqual(3);
    const [moves] = await Promise.all([state(position, 60), stack.chat('berth/smoke')]);
    expect(moves.changed).toBe(true);
  });
});
