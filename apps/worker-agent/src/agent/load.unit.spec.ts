import { describe, expect, it } from 'vitest';
import { decisionId, residentId, workerId } from '#domain/ids.js';
import { aDecision } from '#domain/testing/given.js';
import { initialWorker } from '#domain/worker/evolve.js';
import { type EngineDriver, type EngineExit, LoadFailure, PortTaken, type RunningEngine } from '../ports.js';
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

describe('a load whose port another program takes', () => {
  /** Loads with engines of which so many find their port taken. @returns what the log was told, and what ran at once */
  const loadWith = async (takenTimes: number) => {
    const said: { readonly type: string; readonly data: Record<string, unknown> }[] = [];
    let running = 0;
    let most = 0;
    let next = 4710;
    const launch: EngineDriver['launch'] = (plan) => {
      next += 1;
      const port = next;
      most = Math.max(most, ++running);
      let gone: (exit: EngineExit) => void = () => undefined;
      const exited = new Promise<EngineExit>((resolve) => (gone = resolve));
      const engine: Partial<RunningEngine> = {
        residentId: plan.residentId,
        pid: port,
        port,
        startedAt: new Date(0).toISOString(),
        engine: { kind: 'built-in', version: '1', build: '1' },
        arguments: [],
        exited,
        ready: () => {
          if (port - 4710 > takenTimes)
            return Promise.resolve({
              stagedAt: new Date(0).toISOString(),
              loadedAt: new Date(1).toISOString(),
            });
          running -= 1;
          gone({ code: 1 });
          return Promise.reject(new PortTaken(port, ''));
        },
        measure: () =>
          Promise.resolve({
            byDevice: [],
            hostAnonymousBytes: 0,
            hostResidentBytes: 0,
            contextTokens: 1,
            slots: 1,
          }),
      };
      return Promise.resolve(engine as RunningEngine);
    };
    const exits: unknown[] = [];
    const loader = new Loader({
      engines: new RunningEngines([
        {
          kind: aDecision('o/m').contract.engine.kind,
          probe: () => Promise.resolve(undefined),
          project: () => Promise.resolve(undefined),
          launch,
          adopt: () => Promise.resolve(undefined),
        },
      ]),
      line: { broadcast: () => undefined } as never,
      facts: {
        worker: (_id: string, event: (typeof said)[number]) => Promise.resolve(said.push(event)),
        history: () => Promise.resolve(),
      } as never,
      filesOf: () => ['/m.gguf'],
      state: () => initialWorker(workerId('w')),
      onExit: (_id, exit) => exits.push(exit),
      log: { warn: () => undefined } as never,
    });
    await loader.load(decided('a'), why);
    return {
      said: said.map(({ type, data }) => [type, data['port']]),
      message: said.at(-1)?.data['message'],
      most,
      exits,
    };
  };

  it('goes on as one load: each process is told before it is waited for, and none beside another', async () => {
    const { said, most, exits } = await loadWith(2);
    expect(said).toEqual([
      ['LoadStarted', 4711],
      ['LoadRestarted', 4712],
      ['LoadRestarted', 4713],
      ['ResidentReady', undefined],
    ]);
    expect([most, exits]).toEqual([1, []]);
  });

  it('is given up after three ports, with their numbers', async () => {
    const { said, message } = await loadWith(3);
    expect(said.map(([type]) => type)).toEqual([
      'LoadStarted',
      'LoadRestarted',
      'LoadRestarted',
      'LoadFailed',
    ]);
    expect(message).toBe(
      'The ports 4711, 4712, 4713 were each taken by another program before the engine had them.',
    );
  });
});
