import { expect, it } from 'vitest';
import { decisionId, residentId, workerId } from '#domain/ids.js';
import { aDecision } from '#domain/testing/given.js';
import { initialWorker } from '#domain/worker/evolve.js';
import { type EngineDriver, LoadFailure, type RunningEngine } from '../ports.js';
import { RunningEngines } from './engines.js';
import { Loader } from './load.js';

const why = { correlationId: 'c', causationId: 'c' };
const decided = (name: string) => {
  const data = aDecision('o/m', { residentId: residentId(name), decisionId: decisionId(name) });
  return { decisionId: data.decisionId, residentId: data.residentId, revision: 1, eventId: 'e', data };
};

it('tells when the first load begins and when the last one has ended, also badly', async () => {
  const told: boolean[] = [];
  const launches: ((failure: LoadFailure) => void)[] = [];
  const driver: EngineDriver = {
    kind: aDecision('o/m').contract.engine.kind,
    probe: () => Promise.resolve(undefined),
    project: () => Promise.resolve(undefined),
    launch: () => new Promise<RunningEngine>((_, reject) => launches.push(reject)),
    adopt: () => Promise.resolve(undefined),
  };
  const loader = new Loader({
    engines: new RunningEngines([driver]),
    line: { broadcast: () => undefined } as never,
    facts: { worker: () => Promise.resolve(), history: () => Promise.resolve() } as never,
    filesOf: () => ['/m.gguf'],
    state: () => initialWorker(workerId('w')),
    onExit: () => undefined,
    onLoading: (loading) => told.push(loading),
    log: { warn: () => undefined } as never,
  });
  const loads = [loader.load(decided('a'), why), loader.load(decided('b'), why)];
  expect([told, loader.loading]).toEqual([[true], true]);
  launches[0]?.(new LoadFailure('exited', 'gone', ''));
  await loads[0];
  expect(told).toEqual([true]);
  launches[1]?.(new LoadFailure('exited', 'gone', ''));
  await loads[1];
  expect([told, loader.loading]).toEqual([[true, false], false]);
});
