import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { WorkerEvent } from '#domain/events/index.js';
import { deviceId, RAM, workerId } from '#domain/ids.js';
import { LogOf } from '#domain/testing/given.js';
import { GIB, MIB } from '#domain/units.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { FromAgent } from '../line/messages.js';
import { RunningEngines } from './engines.js';
import { startReadings } from './readings.js';

const CARD = deviceId('amd-1');
const path = process.env['PATH'];
beforeEach(() => {
  // No tool of a driver answers: what was read at the start is all that is heard.
  process.env['PATH'] = '/nowhere';
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  process.env['PATH'] = path;
  vi.useRealTimers();
});

function reading() {
  const log = new LogOf<WorkerEvent>('worker-w');
  const sent: FromAgent[] = [];
  let kept = 0;
  const state = () => log.recorded.reduce(evolveWorker, initialWorker(workerId('w')));
  const readings = startReadings({
    state,
    engines: new RunningEngines([]),
    line: { broadcast: (message: FromAgent) => sent.push(message) } as never,
    facts: { ofItself: (event: WorkerEvent) => Promise.resolve(log.add(event)) } as never,
    log: { warn: (_: unknown, said: string) => expect.fail(said) } as never,
    gpus: [
      {
        device: { deviceId: CARD, kind: 'rocm', name: 'card', totalBytes: 16 * GIB },
        usedBytes: 300 * MIB,
      },
    ],
    kept: { add: () => (kept += 1) } as never,
  });
  const devices = () => sent.map(({ readings: said }) => said?.devices ?? []);
  return { readings, state, devices, kept: () => kept };
}

it('the line has the accelerators four times a second, and all once; once a second it is kept', async () => {
  const { readings, devices, kept } = reading();
  await readings.first;
  await vi.advanceTimersByTimeAsync(4000);
  await readings.stop();
  // The first, and each second; between them every quarter of one.
  expect(kept()).toBeGreaterThanOrEqual(4);
  expect(devices().length).toBeGreaterThanOrEqual(4 * kept() - 4);
  expect(devices().length).toBeLessThanOrEqual(5 * kept() + 1);
  for (const all of devices()) expect(all.map(({ deviceId: id }) => id)).toContain(CARD);
});

it('a card that is not told of any more is unknown in the log, once, and the host is not', async () => {
  const { readings, state, devices } = reading();
  await readings.first;
  expect(state().foreign.get(CARD)).toBe(384 * MIB);
  await vi.advanceTimersByTimeAsync(4000);
  expect(state().foreign.has(CARD)).toBe(true);
  await vi.advanceTimersByTimeAsync(10_000);
  const { foreign, silent, revision } = state();
  expect(foreign.has(CARD)).toBe(false);
  expect(silent.get(CARD)).toMatchObject({ foreignBytes: 384 * MIB });
  expect(foreign.has(RAM)).toBe(true);
  expect(
    devices()
      .at(-1)
      ?.find(({ deviceId: id }) => id === CARD)?.known,
  ).toBe(false);
  await vi.advanceTimersByTimeAsync(2000);
  await readings.stop();
  expect(state().silent.get(CARD)?.since).toBe(silent.get(CARD)?.since);
  expect(state().revision - revision).toBeLessThanOrEqual(2);
});
