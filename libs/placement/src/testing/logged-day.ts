import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { type DeviceId, deviceId, modelKey, RAM, workerId } from '#domain/ids.js';
import { effectiveSettings, type SettingsPatch } from '../setting-levels.js';
import { askOf } from '../ask.js';
import { FoldedLog } from '../what-if/folded-log.js';
import { berthFleetOf, CONTEXT_TOKENS } from '../simulate/berth-fleet.js';
import { BerthScheduler } from '../simulate/berth-scheduler.js';
import type { Scenario, SimCall } from '../simulate/model.js';
import { Random } from '../simulate/random.js';
import { recorded } from '../simulate/recorded.js';
import { simulate, type SimulationResult } from '../simulate/simulate.js';

/** The log that a Berth with one card would have written over some hours, for tests of what reads logs. */

const GB = 1e9;
const SLOTS = 2;
export const CARD: DeviceId = deviceId('card');
export const DAY_MS = Date.parse('2026-01-05T00:00:00Z');
const SETTINGS: SettingsPatch = { context: CONTEXT_TOKENS, parallel: SLOTS, allowedRungs: ['gpu-only'] };

export interface LoggedDay {
  readonly events: readonly Recorded<BerthEvent>[];
  readonly scenario: Scenario;
  /** What happened: as the log tells it. */
  readonly result: SimulationResult;
}

function scenarioOf(calls: number, seed: number, cardGb: number): Scenario {
  const random = new Random(seed);
  const models = Array.from({ length: 5 }, (_, i) => ({
    modelKey: modelKey(`model-${i}`),
    fileBytes: (5 + 3 * i) * GB,
    cardBytes: (6 + 4 * i) * GB,
    slots: SLOTS,
    promptMsPerToken: 0.5,
    decodeMsPerToken: 20,
  }));
  let atMs = DAY_MS;
  const list = Array.from({ length: calls }, (_, index): SimCall => {
    atMs += 1 + Math.round(20_000 * random.exponential());
    return {
      index,
      model: random.below(models.length),
      atMs,
      promptTokens: 1 + random.below(2000),
      outputTokens: 2 + random.below(400),
    };
  });
  return {
    models,
    calls: list,
    boxes: [{ name: 'box', devices: [{ deviceId: CARD, totalBytes: cardGb * GB }], fileCacheBytes: 0 }],
    load: {
      disk: { startSeconds: 2, bytesPerSecond: 1.5 * GB },
      ram: { startSeconds: 0.6, bytesPerSecond: 12 * GB },
      noise: () => 1,
    },
  };
}

export function loggedDay(
  over: { readonly calls?: number; readonly seed?: number; readonly cardGb?: number } = {},
): LoggedDay {
  const { calls = 100, seed = 4, cardGb = 40 } = over;
  const scenario = scenarioOf(calls, seed, cardGb);
  const events: Recorded<BerthEvent>[] = [];
  const revisions = new Map<string, number>();
  const log = new FoldedLog();
  const write = (stream: string, event: BerthEvent, atMs: number): void => {
    const revision = (revisions.get(stream) ?? -1) + 1;
    revisions.set(stream, revision);
    const one = { ...recorded(revision, `logged-${events.length}`, atMs, event), stream };
    events.push(one);
    log.fold(one);
  };
  const known = berthFleetOf(scenario, SLOTS);
  const id = workerId('box');
  const before = DAY_MS - 3_600_000;
  const [worker] = known.workers;
  if (!worker) throw new Error('the scenario has no box');
  const { name, host, engines, devices, physicalCores, ramBytes = 0 } = worker;
  const machine = { name, host, engines, agentVersion: '1', os: 'linux', dataAddress: '', bootId: 'b' };
  write(`worker-${id}`, { type: 'WorkerRegistered', data: machine }, before);
  const capacity = { devices, ramBytes, swapBytes: 0, physicalCores, drives: [] };
  write(`worker-${id}`, { type: 'CapacityMeasured', data: capacity }, before);
  for (const device of [RAM, CARD]) {
    const use = { deviceId: device, bytes: 0, processes: [] };
    write(`worker-${id}`, { type: 'ForeignUseChanged', data: use }, before);
  }
  write('settings-fleet', { type: 'SettingsChanged', data: { patch: SETTINGS, by: 'cli' } }, before);
  for (const model of known.models) {
    write(`catalog-${id}`, { type: 'ModelFound', data: model }, before);
    for (const { value } of known.histories[0]?.get(model.modelKey)?.measured.values() ?? [])
      write(`history-${id}~${model.modelKey}`, { type: 'LoadMeasured', data: value }, before);
  }
  const { settings } = effectiveSettings({ fleet: SETTINGS });
  const result = simulate(
    scenario,
    (world) =>
      new BerthScheduler(world, {
        fleet: {
          ...known,
          workers: log.workers,
          histories: [new Map(known.models.map(({ modelKey: key }) => [key, log.history(id, key)]))],
          ask: askOf(settings, undefined, CONTEXT_TOKENS),
        },
        settings,
        onEvent: write,
      }),
  );
  return { events, scenario, result };
}
