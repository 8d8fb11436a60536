import { describe, expect, it } from 'vitest';
import type { WorkerEvent } from '../events/worker-events.js';
import { decisionId, deviceId, residentId, workerId } from '../ids.js';
import { aDecision, aLoadFailed, aLoadStarted, aReady, LogOf } from '../testing/given.js';
import { evolveWorker, initialWorker, planKey } from './evolve.js';
import type { WorkerState } from './state.js';

const W = workerId('w');
const given = () => new LogOf<WorkerEvent>('worker-w');
const fold = (log: LogOf<WorkerEvent>): WorkerState => log.recorded.reduce(evolveWorker, initialWorker(W));
const phases = (state: WorkerState) =>
  Object.fromEntries(
    [...state.residents.values()].map((r) => [r.modelKey, r.leaving ? `${r.phase}, leaving` : r.phase]),
  );

describe('the fold of a worker', () => {
  it('takes a resident from planned over loading to ready, and its decision from open to ended', () => {
    const log = given().add({ type: 'PlacementDecided', data: aDecision('a') });
    expect(phases(fold(log))).toEqual({ a: 'planned' });
    expect([...fold(log).openDecisions.keys()]).toEqual(['d-a']);
    log.add({ type: 'LoadStarted', data: aLoadStarted('a') });
    expect(phases(fold(log))).toEqual({ a: 'loading' });
    log.add({ type: 'ResidentReady', data: aReady('a') });
    expect(phases(fold(log))).toEqual({ a: 'ready' });
    expect(fold(log).openDecisions.size).toBe(0);
    expect(fold(log).revision).toBe(2);
  });

  it('knows a load by the process that has it now: its port may have been taken under the first', () => {
    const restarted = {
      type: 'LoadRestarted' as const,
      data: {
        residentId: residentId('r-a'),
        port: 4712,
        pid: 78,
        pidStartTicks: 9,
        cause: 'port-taken' as const,
      },
    };
    const log = given().add({ type: 'PlacementDecided', data: aDecision('a') });
    log.add({ type: 'LoadStarted', data: aLoadStarted('a') }).add(restarted);
    expect(fold(log).residents.get(residentId('r-a'))).toMatchObject({
      phase: 'loading',
      port: 4712,
      pid: 78,
      pidStartTicks: 9,
    });
    // One that serves is what it is.
    log.add({ type: 'ResidentReady', data: aReady('a') });
    log.add({ ...restarted, data: { ...restarted.data, port: 4713 } });
    expect(fold(log).residents.get(residentId('r-a'))?.port).toBe(4712);
  });

  it('knows nothing of a device whose driver tells nothing any more, but since when and what was', () => {
    const device = deviceId('GPU-a');
    const use = (bytes?: number): WorkerEvent => ({
      type: 'ForeignUseChanged',
      data: { deviceId: device, ...(bytes === undefined ? {} : { bytes }), processes: [] },
    });
    const log = given().add(use(512)).add(use());
    const since = log.recorded.at(-1)?.metadata.at;
    expect(fold(log).foreign.has(device)).toBe(false);
    expect(fold(log).silent.get(device)).toEqual({ since, foreignBytes: 512 });
    expect(fold(log.add(use())).silent.get(device)).toEqual({ since, foreignBytes: 512 });
    log.add(use(640));
    expect([fold(log).foreign.get(device), fold(log).silent.size]).toEqual([640, 0]);
  });

  it('charges a resident with what was measured of it after it was ready', () => {
    const log = ready('a');
    const { measured } = aReady('a');
    const more = { ...measured, hostAnonymousBytes: measured.hostAnonymousBytes + 1 };
    log.add({ type: 'ResidentRemeasured', data: { residentId: residentId('r-a'), measured: more } });
    expect(fold(log).residents.get(residentId('r-a'))?.measured).toEqual(more);
  });

  it('marks the victims of a decision as leaving, so that no call is sent there any more', () => {
    const log = ready('a').add({
      type: 'PlacementDecided',
      data: aDecision('b', { victims: [victim('a')] }),
    });
    expect(phases(fold(log))).toEqual({ a: 'ready, leaving', b: 'planned' });
    log.add({
      type: 'EvictionStarted',
      data: { residentId: residentId('r-a'), decisionId: decisionId('d-b'), reason: 'room' },
    });
    log.add({
      type: 'ResidentEvicted',
      data: {
        residentId: residentId('r-a'),
        decisionId: decisionId('d-b'),
        reason: 'room',
        freed: [],
        seconds: 1,
      },
    });
    expect(phases(fold(log))).toEqual({ b: 'planned' });
  });

  it('lets go of victims not begun on when their decision is closed, and keeps those begun on', () => {
    const both = ready('a', 'c').add({
      type: 'PlacementDecided',
      data: aDecision('b', { victims: [victim('a'), victim('c')] }),
    });
    both.add({
      type: 'EvictionStarted',
      data: { residentId: residentId('r-c'), decisionId: decisionId('d-b'), reason: 'room' },
    });
    both.add({
      type: 'DecisionClosed',
      data: { decisionId: decisionId('d-b'), why: 'agent-refused', reason: 'busy' },
    });
    expect(phases(fold(both))).toEqual({ a: 'ready', c: 'ready, leaving' });
  });

  it('takes the figures of an adopted engine that was measured anew, and keeps the old ones without', () => {
    const adopted = { residentId: residentId('r-a'), pid: 7 };
    const log = ready('a').add({ type: 'ResidentAdopted', data: adopted });
    const { measured } = aReady('a');
    expect(fold(log).residents.get(adopted.residentId)).toMatchObject({ pid: 7, measured });
    const grown = { ...measured, hostAnonymousBytes: measured.hostAnonymousBytes + 1000 };
    log.add({ type: 'ResidentAdopted', data: { ...adopted, measured: grown } });
    expect(fold(log).residents.get(adopted.residentId)?.measured).toEqual(grown);
  });

  it('lets a resident stay after a failed eviction', () => {
    const log = ready('a')
      .add({ type: 'EvictionStarted', data: { residentId: residentId('r-a'), reason: 'operator' } })
      .add({
        type: 'EvictionFailed',
        data: { residentId: residentId('r-a'), reason: 'operator', why: 'busy', message: 'busy' },
      });
    expect(phases(fold(log))).toEqual({ a: 'ready' });
  });

  it('marks a resident that was idle for too long as leaving, once, and lets it stay when that fails', () => {
    const unload = (decision: string) =>
      ({
        type: 'UnloadDecided',
        data: {
          decisionId: decisionId(decision),
          residentId: residentId('r-a'),
          modelKey: aDecision('a').modelKey,
          idleSeconds: 60,
          idleUnloadSeconds: 60,
          saidBy: 'settings',
          frees: [],
          basedOn: [],
          now: new Date(0).toISOString(),
        },
      }) as const;
    const log = ready('a').add(unload('d-idle')).add(unload('d-again'));
    expect(fold(log).residents.get(residentId('r-a'))?.leaving).toEqual({
      by: 'd-idle',
      reason: 'idle',
      started: false,
      sinceRevision: 3,
    });
    log.add({
      type: 'EvictionFailed',
      data: { residentId: residentId('r-a'), reason: 'idle', why: 'busy', message: 'a call came' },
    });
    expect(phases(fold(log))).toEqual({ a: 'ready' });
  });

  it('keeps the band that a call asked for with its resident, and none where none was asked, as in older logs', () => {
    const log = given()
      .add({ type: 'PlacementDecided', data: aDecision('a', { priority: 3 }) })
      .add({ type: 'PlacementDecided', data: aDecision('b') });
    expect([...fold(log).residents.values()].map((r) => r.priority)).toEqual([3, undefined]);
  });

  it('remembers how often a plan failed in a row, and forgets it when it loads', () => {
    const log = given();
    for (const _ of [1, 2]) {
      log.add({ type: 'PlacementDecided', data: aDecision('a') });
      log.add({ type: 'LoadFailed', data: aLoadFailed('a') });
    }
    const failed = fold(log).failedPlans.get(planKey(aDecision('a')));
    expect(failed).toMatchObject({ times: 2, class: 'out-of-memory', message: 'failed to allocate' });
    expect(failed?.roomBytes).toEqual([{ deviceId: 'ram', bytes: 10_000 }]);
    log.add({ type: 'PlacementDecided', data: aDecision('a') });
    log.add({ type: 'LoadStarted', data: aLoadStarted('a') });
    log.add({ type: 'ResidentReady', data: aReady('a') });
    expect(fold(log).failedPlans.size).toBe(0);
  });

  it('holds a cancelled load against nobody', () => {
    const log = given()
      .add({ type: 'PlacementDecided', data: aDecision('a') })
      .add({ type: 'LoadFailed', data: aLoadFailed('a', { class: 'cancelled' }) });
    expect(fold(log).failedPlans.size).toBe(0);
    expect(fold(log).residents.size).toBe(0);
  });

  it('ignores an event id that it has seen, and moves its revision on', () => {
    const log = given().add({ type: 'PlacementDecided', data: aDecision('a') });
    log.add(
      { type: 'PinSet', data: { modelKey: aDecision('a').modelKey, pinned: true, by: 'x' } },
      { id: 'same' },
    );
    log.add(
      { type: 'PinSet', data: { modelKey: aDecision('a').modelKey, pinned: false, by: 'x' } },
      { id: 'same' },
    );
    expect(fold(log).pins.size).toBe(1);
    expect(fold(log).revision).toBe(2);
  });

  it('ignores a second end of a resident and outcomes of residents that it does not know', () => {
    const log = ready('a')
      .add({ type: 'ResidentCrashed', data: { residentId: residentId('r-a'), during: 'idle', logTail: '' } })
      .add({ type: 'ResidentFoundGone', data: { residentId: residentId('r-a'), pid: 77 } })
      .add({ type: 'ResidentReady', data: aReady('a') })
      .add({ type: 'LoadFailed', data: aLoadFailed('ghost') });
    expect(fold(log).residents.size).toBe(0);
  });

  it('keeps limits by tier and takes one away by null', () => {
    const log = given()
      .add({ type: 'LimitSet', data: { resource: 'ram', tier: 'designation', value: 100, by: 'agent' } })
      .add({ type: 'LimitSet', data: { resource: 'ram', tier: 'setting', value: 50, by: 'admin' } })
      .add({ type: 'LimitSet', data: { resource: 'ram', tier: 'setting', value: null, by: 'admin' } });
    expect([...fold(log).limits.designation]).toEqual([['ram', 100]]);
    expect(fold(log).limits.setting.size).toBe(0);
  });

  it('never changes the state that it was given', () => {
    const log = ready('a');
    const before = fold(log);
    const frozen = JSON.stringify([...before.residents]);
    evolveWorker(before, {
      ...log.recorded[0]!,
      revision: 9,
      id: 'new',
      event: { type: 'PlacementDecided', data: aDecision('b', { victims: [victim('a')] }) },
    });
    expect(JSON.stringify([...before.residents])).toBe(frozen);
  });
});

const victim = (name: string) => ({
  residentId: residentId(`r-${name}`),
  modelKey: aDecision(name).modelKey,
  lossSeconds: 0,
  frees: [],
});

function ready(...names: string[]): LogOf<WorkerEvent> {
  const log = given();
  for (const name of names) {
    log.add({ type: 'PlacementDecided', data: aDecision(name) });
    log.add({ type: 'LoadStarted', data: aLoadStarted(name) });
    log.add({ type: 'ResidentReady', data: aReady(name) });
  }
  return log;
}
