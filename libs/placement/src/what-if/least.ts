import type { DeviceId, ModelKey } from '#domain/ids.js';
import { sumOf } from '#domain/placement-terms.js';
import { type CachingProgram, programAtOnce, programWithDelay } from '../simulate/caching-program.js';
import { tierOf } from '../room.js';
import type { LoggedCalls, SimulatedTime } from './run.js';
import type { TimeOfLog } from './time-of-log.js';

export interface LeastPrograms {
  readonly atOnce: CachingProgram;
  /** When a call may wait as long as an overdue one does. */
  readonly delayed: CachingProgram;
  readonly delaySeconds: number;
}

/** Devices on which anybody was evicted, and how many bytes went there. */
export function contested(time: TimeOfLog): ReadonlyMap<DeviceId, number> {
  const bytes = new Map<DeviceId, number>();
  for (const { data } of time.decisions) {
    if (!('victims' in data)) continue;
    for (const { frees } of data.victims)
      for (const { deviceId, bytes: freed } of frees)
        if (freed > 0) bytes.set(deviceId, (bytes.get(deviceId) ?? 0) + freed);
  }
  return bytes;
}

/**
 * The least loading of any policy that places each model as it was placed: only devices on which somebody was evicted
 * are short, and a model takes of them the least that any placement of it in the time took.
 */
export function leastPrograms(
  time: TimeOfLog,
  { models }: LoggedCalls,
  { scenario, fleet }: SimulatedTime,
): LeastPrograms {
  const short = contested(time);
  const bytes = new Map<ModelKey, number>();
  for (const { workerId, data } of time.residents.values()) {
    const box = fleet.workers.findIndex((w) => w.workerId === workerId);
    let sum = 0;
    for (const on of fleet.takes(box, data).byDevice) if (short.has(on.deviceId)) sum += sumOf(on);
    bytes.set(data.modelKey, Math.min(sum, bytes.get(data.modelKey) ?? Infinity));
  }
  const measured = {
    bytes: models.map((key) => bytes.get(key) ?? 0),
    loadSeconds: models.map((key) => fleet.usualLoadSeconds(key)),
    roomBytes: fleet.workers.reduce(
      (sum, worker) =>
        sum + [...short.keys()].reduce((s, id) => s + (tierOf(worker, id)?.limitBytes ?? 0), 0),
      0,
    ),
    there: new Set(fleet.there.map(({ model }) => model)),
  };
  const delaySeconds = fleet.settings.overdueAfterSeconds;
  return {
    atOnce: programAtOnce(scenario, measured),
    delayed: programWithDelay(scenario, delaySeconds, measured),
    delaySeconds,
  };
}
