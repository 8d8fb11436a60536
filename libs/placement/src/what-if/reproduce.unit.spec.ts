import { describe, expect, it } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import { type CallHistory, evolveCalls, initialCalls } from '#domain/calls/call-history.js';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import { type CallId, callId, modelKey, type ModelKey, RAM, residentId } from '#domain/ids.js';
import { classKey, placementClassOf } from '#domain/placement-terms.js';
import { GIB, MIB } from '#domain/units.js';
import { initialWorker, evolveWorker } from '#domain/worker/evolve.js';
import { decide } from '../decide.js';
import { recorded } from '../simulate/recorded.js';
import { BUILT_IN, decidedOf, input, model, NOW_MS, ticket, WORKER } from '../testing/factories.js';
import { reproduceLog } from './reproduce-log.js';

const iso = (seconds: number): string => new Date(NOW_MS + seconds * 1000).toISOString();
const key = modelKey('a');

/** A machine with room for one of two models, by its events; each is written as it is added. */
class Log {
  readonly events: Recorded<BerthEvent>[] = [];
  worker = initialWorker(WORKER);
  readonly histories = new Map<ModelKey, PairHistory>();
  readonly calls = new Map<ModelKey, CallHistory>();

  add(stream: string, event: BerthEvent, seconds = 0): this {
    const revision = this.events.filter((e) => e.stream === stream).length;
    const one = { ...recorded(revision, `e${this.events.length}`, NOW_MS + seconds * 1000, event), stream };
    this.events.push(one);
    if (stream.startsWith('worker-')) this.worker = evolveWorker(this.worker, one as never);
    const key = modelKey(stream.slice(-1));
    if (stream.startsWith('history-'))
      this.histories.set(key, evolveHistory(initialHistory(WORKER, key), one as never));
    if (stream.startsWith('calls-'))
      this.calls.set(key, evolveCalls(this.calls.get(key) ?? initialCalls(key), one as never));
    return this;
  }

  on(event: BerthEvent, seconds = 0): this {
    return this.add(`worker-${WORKER}`, event, seconds);
  }
}

const machine = (): Log =>
  new Log()
    .on({
      type: 'WorkerRegistered',
      data: {
        name: 'box',
        host: 'box',
        agentVersion: '1',
        os: 'linux',
        engines: [BUILT_IN],
        dataAddress: '127.0.0.1',
        bootId: 'b',
      },
    })
    .on({
      type: 'CapacityMeasured',
      data: { devices: [], ramBytes: 8 * GIB, swapBytes: 0, physicalCores: 4, drives: [] },
    })
    .on({ type: 'LimitSet', data: { resource: RAM, tier: 'designation', value: 160 * MIB, by: 'cli' } })
    .on({ type: 'ForeignUseChanged', data: { deviceId: RAM, bytes: 0, processes: [] } })
    .add(`catalog-${WORKER}`, { type: 'ModelFound', data: model('a') })
    .add(`catalog-${WORKER}`, { type: 'ModelFound', data: model('b') });

function called(log: Log, name: string, seconds: number, resident?: string): CallId {
  const id = callId(`call-${name}-${seconds}`);
  const common = { callId: id, apiId: 'api' as never, modelKey: modelKey(name) };
  const stream = `calls-${name}`;
  log.add(stream, {
    type: 'CallStarted',
    data: {
      ...common,
      endpoint: '/v1/chat/completions',
      background: false,
      stream: false,
      promptBytes: 80,
      receivedAt: iso(seconds),
    },
  });
  if (resident !== undefined)
    log.add(stream, {
      type: 'CallFinished',
      data: {
        ...common,
        outcome: 'completed',
        status: 200,
        attempts: 1,
        residentId: residentId(resident),
        stamps: { receivedAt: iso(seconds), forwardedAt: iso(seconds + 3), finishedAt: iso(seconds + 5) },
        tokens: { prompt: 20, output: 10 },
        timings: { promptMs: 100, decodeMs: 900 },
        bytesOut: 40,
      },
    });
  return id;
}

/** What the api writes for a call at that time, from what it knows. */
function placed(log: Log, name: string, seconds: number, resident: string): PlacementDecidedData {
  const asker = ticket(name, {
    callId: callId(`call-${name}-${seconds}`),
    arrivedAtMs: NOW_MS + seconds * 1000,
  });
  const unprojectable = new Set<string>();
  const question = input(name, {
    worker: log.worker,
    otherHistories: log.histories,
    calls: log.calls,
    ticket: asker,
    cause: { kind: 'call', callId: asker.callId },
    residentId: residentId(resident),
    unprojectable: unprojectable,
    activity: new Map([[residentId('of-a'), { callsInFlight: 0, lastCallEndedAtMs: NOW_MS + 5000 }]]),
    basedOn: [
      { stream: `worker-${WORKER}`, revision: log.worker.revision },
      { stream: `catalog-${WORKER}`, revision: 1 },
      { stream: `history-${WORKER}~${name}`, revision: -1 },
    ],
    nowMs: NOW_MS + seconds * 1000,
  });
  let outcome = decide(question);
  // As the api does with an engine that cannot say what a plan would take.
  while (outcome.kind === 'project') {
    for (const { artifact, contract } of outcome.wanted)
      unprojectable.add(classKey(placementClassOf(artifact, contract)));
    outcome = decide(question);
  }
  return decidedOf(outcome);
}

/** Calls to a, then to b, for which a is evicted. */
function story(change: (second: PlacementDecidedData) => PlacementDecidedData = (d) => d): Log {
  const log = machine();
  called(log, 'a', 0, 'of-a');
  const first = placed(log, 'a', 0, 'of-a');
  log.on({ type: 'PlacementDecided', data: first });
  const ram = {
    deviceId: RAM,
    weightsBytes: 72 * MIB,
    kvBytes: 8 * MIB,
    computeBytes: 0,
    processBytes: 20 * MIB,
  };
  log.on({
    type: 'ResidentReady',
    data: {
      residentId: residentId('of-a'),
      stagedAt: iso(1),
      loadedAt: iso(2),
      measured: {
        byDevice: [ram],
        hostAnonymousBytes: 28 * MIB,
        hostResidentBytes: 100 * MIB,
        contextTokens: first.contract.contextTokens,
        slots: 1,
      },
      computesOn: [],
      kind: 'chat',
    },
  });
  log.add(`history-${WORKER}~a`, {
    type: 'LoadMeasured',
    data: {
      class: placementClassOf(first.artifact, first.contract),
      residentId: 'of-a',
      byDevice: [ram],
      hostAnonymousBytes: 28 * MIB,
      hostResidentBytes: 100 * MIB,
      seconds: 2,
      predictedByDevice: [],
    },
  });
  called(log, 'b', 60);
  const second = placed(log, 'b', 60, 'of-b');
  // Something that it was not based on comes before it is written.
  log.on({ type: 'PinSet', data: { modelKey: key, pinned: true, by: 'cli' } });
  return log.on({ type: 'PlacementDecided', data: change(second) }, 60);
}

describe('decisions made again from the log', () => {
  it('are the same, from the state they were based on and not from what came in between', () => {
    const { decisions, identical, differences } = reproduceLog(story().events);
    expect(differences).toEqual([]);
    expect({ decisions, identical }).toEqual({ decisions: 2, identical: 2 });
  });

  it('are listed with what differs', () => {
    const { differences } = reproduceLog(story((d) => ({ ...d, victims: [], rung: 'max-ram' })).events);
    expect(differences).toMatchObject([
      {
        modelKey: 'b',
        fields: [
          { field: 'rung', logged: 'max-ram', again: 'ram-only' },
          { field: 'victims', logged: '', again: 'of-a' },
        ],
        reason: expect.stringContaining('not known') as string,
      },
    ]);
  });

  it('are told apart from those of other rules, of an older log, and of a state that is not there', () => {
    const reasonOf = (change: (d: PlacementDecidedData) => PlacementDecidedData): string | undefined =>
      reproduceLog(story((d) => change({ ...d, victims: [] })).events).differences[0]?.reason;
    expect(reasonOf((d) => ({ ...d, policy: { ...d.policy, version: 1 } }))).toMatch(
      /version 1 of the rules/,
    );
    expect(reasonOf(({ given: _given, ...d }) => d)).toMatch(/before decisions kept the facts/);
    expect(reasonOf((d) => ({ ...d, basedOn: [{ stream: `worker-${WORKER}`, revision: 99 }] }))).toMatch(
      /too far back/,
    );
  });

  it('are guessed from the stamps of calls where an older log does not say more', () => {
    const { identical } = reproduceLog(story(({ given: _given, ...d }) => d).events);
    expect(identical).toBe(2);
  });
});
