import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { pino } from 'pino';
import type { BerthEvent, ModelEvent, PlacementDecidedData, WorkerEvent } from '#domain/events/index.js';
import { callId, decisionId, modelKey, RAM, workerId, type WorkerId } from '#domain/ids.js';
import { GIB } from '#domain/units.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { SAMPLES } from '#events/testing/samples.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { decide } from '#placement/decide.js';
import { noOptions } from '#placement/model-name.js';
import { newId } from '#runtime/ids.js';
import { CallHistories } from '../fleet/call-histories.js';
import { Fleet } from '../fleet/fleet.js';
import type { AgentSessions } from '../agents/sessions.js';
import { foundModel } from '../testing/scripted-agent.js';
import { eventually } from '../testing/stand.js';
import { Activity } from './activity.js';
import { Decider } from './decider.js';
import { type Claim, LoadClaims } from './load-claims.js';
import type { Wanted } from './port.js';
import { TermsByWorker } from './terms.js';

const [first, second, third] = [workerId(newId()), workerId(newId()), workerId(newId())];

let node: EmbeddedNode;
let log: EventLog;
const opened: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  node = await startEmbeddedNode();
  log = openEventLog({ url: node.url, by: 'test', now: Date.now });
  for (const id of [first, second, third]) {
    await write(streams.worker(id), {
      type: 'WorkerRegistered',
      data: {
        name: id,
        host: 'here',
        agentVersion: '0',
        os: 'test',
        engines: [{ kind: 'built-in', version: '1', build: '1', capabilities: ['chat'] }],
        dataAddress: '127.0.0.1',
        bootId: 'boot',
      },
    });
    await write(streams.worker(id), {
      type: 'CapacityMeasured',
      data: { devices: [], ramBytes: 4 * GIB, swapBytes: 0, physicalCores: 4, drives: [] },
    });
    await write(streams.worker(id), {
      type: 'ForeignUseChanged',
      data: { deviceId: RAM, bytes: 0, processes: [] },
    });
    if (id !== third) await write(streams.catalog(id), { type: 'ModelFound', data: foundModel('cold') });
    await write(streams.catalog(id), { type: 'ModelFound', data: foundModel('busy') });
  }
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.stop();
});
afterAll(async () => {
  await log.close();
  await node.stop();
});

async function write(stream: string, event: BerthEvent): Promise<void> {
  const cause = { correlationId: 'test', causationId: 'test' };
  const outcome = await log.append(stream, [{ id: newId(), event, cause }], 'any');
  expect(outcome.ok).toBe(true);
}

async function decisions(key = 'cold'): Promise<readonly PlacementDecidedData[]> {
  const found: PlacementDecidedData[] = [];
  for (const id of [first, second, third])
    for await (const { event } of log.readForwards<WorkerEvent>(streams.worker(id)))
      if (event.type === 'PlacementDecided' && event.data.modelKey === modelKey(key)) found.push(event.data);
  return found;
}

const claims = (key: string) => log.readBackwards<ModelEvent>(streams.model(modelKey(key)), 10);

/** A decider as an api has it, over its own fold of the log; its line reaches the workers that are named. */
const deciderReaching = (...workers: readonly WorkerId[]) => deciderOf('cold', workers);

async function deciderOf(key: string, workers: readonly WorkerId[]) {
  const own = openEventLog({ url: node.url, by: 'test', now: Date.now });
  const fleet = new Fleet(own);
  await fleet.start();
  opened.push({
    stop: async () => {
      await fleet.stop();
      await own.close();
    },
  });
  const reached = new Set(workers);
  let settled = 0;
  const sessions = {
    isConnected: (id: WorkerId) => reached.has(id),
    awaySinceMs: () => undefined,
    project: () => Promise.resolve({ ok: false, reason: 'nothing is projected here' }),
  };
  const decider = new Decider({
    fleet,
    log: own,
    sessions: sessions as unknown as AgentSessions,
    activity: new Activity(Date.now),
    callHistories: new CallHistories(own, Date.now),
    terms: new TermsByWorker(fleet.settings),
    decide,
    logger: pino({ level: 'silent' }),
    now: Date.now,
    onSettled: () => (settled += 1),
  });
  const model = fleet.models.get(modelKey(key))?.model;
  if (!model) throw new Error('the model is not there');
  const terms = new TermsByWorker(fleet.settings).of({ model, options: noOptions }, first);
  const call = callId(newId());
  const wanted: Wanted = {
    ...terms,
    callId: call,
    model,
    options: noOptions,
    background: false,
    promptTokens: 10,
    receivedAtMs: Date.now(),
  };
  const ticket = {
    callId: call,
    modelKey: model.modelKey,
    arrivedAtMs: Date.now(),
    arrival: 0,
    background: false,
    promptTokens: 10,
  };
  return {
    reached,
    evaluate: () => decider.evaluate(wanted, ticket, [ticket]),
    second: (waitSeconds: number) => decider.second(wanted, ticket, [ticket], { waiting: 1, waitSeconds }),
    /** Whether what the last look began has come to its end. */
    settles: async (look: () => void) => {
      const before = settled;
      look();
      await eventually('its end', () => (settled > before ? true : undefined));
    },
  };
}

describe('a model that is cold on every worker', () => {
  it('is loaded once by two apis that decide at the same moment for two workers', async () => {
    const deciders = [await deciderReaching(first), await deciderReaching(second)];
    // Histories are read and engines asked first, so that both are about to decide.
    for (const one of deciders)
      for (const kind of ['queued', 'sizing'])
        await one.settles(() => expect(one.evaluate().kind).toBe(kind));
    await Promise.all(deciders.map((one) => one.settles(() => expect(one.evaluate().kind).toBe('deciding'))));
    const [decided, ...more] = await decisions();
    expect(more).toEqual([]);
    expect((await claims('cold')).map(({ event }) => event.data.decisionId)).toEqual([decided?.decisionId]);
    // Whoever came second finds the load as soon as it reaches its worker.
    for (const one of deciders) {
      one.reached.add(first).add(second);
      expect(await eventually('the load', () => joined(one.evaluate()))).toBe(decided?.residentId);
    }
    expect(await decisions()).toHaveLength(1);
  });

  const joined = (evaluation: ReturnType<Decider['evaluate']>) =>
    evaluation.kind === 'join' ? evaluation.residentId : undefined;

  it('is claimed by one of many that ask at once, and again once that claim is void', async () => {
    let nowMs = Date.now();
    const many = [first, second, first, second].map((id) => claiming('other', id, () => nowMs));
    const kinds = await Promise.all(many.map(({ take }) => take()));
    expect(kinds.sort()).toEqual(['another', 'another', 'another', 'taken']);
    const one = claiming('other', first, () => nowMs);
    // Its decision never comes: it is waited for, and void in the end.
    expect(await one.take()).toBe('another');
    expect(one.held()).toMatch(/claimed by another api/);
    nowMs += 11_000;
    expect(await one.take()).toBe('taken');
    expect(await claims('other')).toHaveLength(2);
  });

  it('is claimed anew at once by an api whose own plan did not stand when it was to be written', async () => {
    const one = claiming('given-up', first, Date.now);
    expect(await one.take()).toBe('taken');
    expect(await one.take()).toBe('another');
    one.giveUp();
    expect(await one.take()).toBe('taken');
    expect(await claims('given-up')).toHaveLength(2);
  });

  it('is claimed anew at once when the load that was claimed has come and gone', async () => {
    const [decided] = await decisions();
    expect((await claims('cold'))[0]?.event.data.decisionId).toBe(decided?.decisionId);
    expect(await claiming('cold', second, Date.now).take()).toBe('taken');
  });

  /** Over a fleet in which nothing is loaded. */
  function claiming(name: string, id: WorkerId, now: () => number) {
    const fleet = { residentsOf: () => [], catchUpWorker: () => Promise.resolve(), worker: () => undefined };
    const loadClaims = new LoadClaims({ fleet, log, now });
    const key = modelKey(name);
    let taken: Claim | undefined;
    return {
      held: () => loadClaims.of(key)?.why,
      take: async () => {
        const claim = { modelKey: key, workerId: id, decisionId: decisionId(newId()) };
        const { kind } = await loadClaims.take(claim, newId());
        if (kind === 'taken') taken = claim;
        return kind;
      },
      giveUp: () => taken && loadClaims.giveUp(taken),
    };
  }
});

describe('a model whose slots are all taken', () => {
  it('gets one more resident by two apis that see it at the same moment for two workers', async () => {
    // What the tests above decided is no load that goes on.
    for (const id of [first, second])
      for await (const { event } of log.readForwards<WorkerEvent>(streams.worker(id)))
        if (event.type === 'PlacementDecided')
          await write(streams.worker(id), {
            type: 'DecisionClosed',
            data: { decisionId: event.data.decisionId, why: 'cancelled', reason: 'test' },
          });
    const at = await deciderOf('busy', [first]);
    for (const kind of ['queued', 'sizing', 'deciding'])
      await at.settles(() => expect(at.evaluate().kind).toBe(kind));
    const [{ residentId, decisionId: id }] = (await decisions('busy')) as [PlacementDecidedData];
    const named = { residentId, decisionId: id, modelKey: modelKey('busy') };
    await write(streams.worker(first), {
      type: 'LoadStarted',
      data: { ...SAMPLES.LoadStarted, ...named },
    });
    await write(streams.worker(first), {
      type: 'ResidentReady',
      data: { ...SAMPLES.ResidentReady, residentId },
    });
    const apis = [await deciderOf('busy', [second]), await deciderOf('busy', [third])];
    // A wait that is not worth a load: their histories are read, and the engines asked.
    for (const one of apis)
      for (const _ of ['reads', 'asks']) await one.settles(() => expect(one.second(0)).toBe(false));
    const began: boolean[] = [];
    await Promise.all(apis.map((one) => one.settles(() => began.push(one.second(10_000)))));
    expect(began).toEqual([true, true]);
    const [, another, ...more] = await decisions('busy');
    expect([another?.forSlots?.waitSeconds, more]).toEqual([10_000, []]);
    // Whoever lost finds it, and is content.
    for (const one of apis) {
      one.reached.add(second).add(third);
      await eventually('the second is seen', () => (one.second(10_000) ? undefined : true));
    }
    expect(await decisions('busy')).toHaveLength(2);
  });
});
