import type { FoundModel } from '#domain/events/catalog-events.js';
import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import { initialHistory, type PairHistory } from '#domain/history/history.js';
import { type DeviceId, type ModelKey, RAM, type WorkerId } from '#domain/ids.js';
import {
  type Contract,
  type DeviceBytes,
  type NeedTerm,
  type NeedTermName,
  placementClassOf,
  sumOf,
} from '#domain/placement-terms.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { askOf } from '../ask.js';
import { offloadOrderOf } from '../engine-choice.js';
import { loadSeconds } from '../loss.js';
import { lastMeasured, measuredOf } from '../measured.js';
import { acceleratorsOf, tierOf } from '../room.js';
import { effectiveSettings } from '../setting-levels.js';
import type { EffectiveSettings } from '../settings.js';
import type { FleetTerms, Outside, ResidentThere, Takes } from '../simulate/berth-fleet.js';
import { estimatedSecondsPerToken } from '../speed.js';
import { changedWorkers, originalOf, type WhatIfChange } from './change.js';
import type { TimeOfLog } from './time-of-log.js';

/** The workers of a stretch of the log under a change, with what is known of the models on them. */
export class LoggedFleet {
  readonly workers: readonly WorkerState[];
  readonly there: readonly ResidentThere[];
  readonly outside: readonly Outside[];
  /** Of the fleet as such: the order of the queue, and how long a call may wait. */
  readonly settings: EffectiveSettings;
  readonly #time: TimeOfLog;
  readonly #change: WhatIfChange;
  readonly #models: readonly ModelKey[];
  readonly #terms = new Map<string, FleetTerms | undefined>();
  readonly #settings = new Map<string, EffectiveSettings>();

  constructor(time: TimeOfLog, change: WhatIfChange, models: readonly ModelKey[]) {
    this.#time = time;
    this.#change = change;
    this.#models = models;
    const asItWas = time.end.workers.map((end) => beginning(time, end));
    const changed = changedWorkers(asItWas, change);
    const kept = changed.map((worker) => fitting(worker));
    this.workers = kept;
    this.there = kept.flatMap((worker, box) => this.#thereOn(worker, box));
    this.outside = this.#outsideOf();
    this.settings = effectiveSettings({
      ...time.start.levels(undefined, '' as ModelKey),
      call: change.settings ?? {},
    }).settings;
  }

  /** What was measured of the pair over the whole time: how it truly behaves. */
  truth(worker: WorkerId, key: ModelKey): PairHistory {
    const id = originalOf(worker);
    return this.#time.end.histories.get(id)?.get(key) ?? initialHistory(id, key);
  }

  /** What was believed at the beginning; what an engine would have said of a plan is known. */
  histories(worker: WorkerId): ReadonlyMap<ModelKey, PairHistory> {
    const id = originalOf(worker);
    const before = this.#time.start.histories.get(id);
    const after = this.#time.end.histories.get(id) ?? new Map<ModelKey, PairHistory>();
    return new Map(
      [...after].map(([key, { projected }]) => [
        key,
        { ...(before?.get(key) ?? initialHistory(id, key)), projected },
      ]),
    );
  }

  terms(box: number, model: number): FleetTerms | undefined {
    const name = `${box}|${model}`;
    if (this.#terms.has(name)) return this.#terms.get(name);
    const terms = this.#termsOf(box, model);
    this.#terms.set(name, terms);
    return terms;
  }

  takes(box: number, { modelKey, artifact, contract, need }: PlanTaken): Takes {
    const worker = this.workers[box];
    if (!worker) return { byDevice: [] };
    const ofClass = placementClassOf(artifact, contract);
    const truth = this.truth(worker.workerId, modelKey);
    const weights = need.reduce((sum, t) => sum + (t.term === 'weights' ? (t.bytes ?? 0) : 0), 0);
    const tokens = this.tokenSeconds(worker, modelKey, artifact, contract);
    return {
      byDevice: chargedBytes(need, contract, measuredOf(truth, ofClass)?.value.byDevice),
      seconds: loadSeconds(truth, ofClass, weights).seconds,
      ...(tokens === undefined ? {} : { tokenSeconds: tokens }),
    };
  }

  /** Usual seconds of a load of the model: of the class that was loaded last, on the worker that has it. */
  usualLoadSeconds(key: ModelKey): number {
    for (const { workerId } of this.#time.end.workers) {
      const truth = this.truth(workerId, key);
      const last = lastMeasured(truth);
      if (last) return loadSeconds(truth, last.value.class, 0).seconds;
    }
    return loadSeconds(undefined, NO_CLASS, this.fileBytes(key)).seconds;
  }

  tokenSeconds(worker: WorkerState, key: ModelKey, artifact: string, contract: Contract): number | undefined {
    const geometry = this.#modelOn(worker.workerId, key)?.artifacts.find(
      (a) => a.label === artifact,
    )?.geometry;
    const engine = worker.engines.find((e) => e.kind === contract.engine.kind) ?? worker.engines[0];
    return (
      geometry &&
      engine &&
      estimatedSecondsPerToken(worker, geometry, contract, contract.threads, offloadOrderOf(engine))
    );
  }

  /** Of the first artifact: what a load reads. */
  fileBytes(key: ModelKey): number {
    return this.model(key)?.artifacts[0]?.files.reduce((sum, f) => sum + f.bytes, 0) ?? 0;
  }

  /** On whatever worker has it. */
  model(key: ModelKey): FoundModel | undefined {
    for (const { workerId } of this.#time.end.workers) {
      const found = this.#modelOn(workerId, key);
      if (found) return found;
    }
    return undefined;
  }

  #modelOn(worker: WorkerId, key: ModelKey): FoundModel | undefined {
    const id = originalOf(worker);
    return this.#time.start.modelsOn.get(id)?.get(key) ?? this.#time.end.modelsOn.get(id)?.get(key);
  }

  #termsOf(box: number, model: number): FleetTerms | undefined {
    const worker = this.workers[box];
    const key = this.#models[model];
    if (!worker || key === undefined) return undefined;
    const found = this.#modelOn(worker.workerId, key);
    if (!found) return undefined;
    const settings = this.#settingsOf(worker.workerId, key);
    const policies = new Map(this.#models.map((other) => [other, this.#settingsOf(worker.workerId, other)]));
    const ask = askOf(settings, undefined, found.artifacts[0]?.geometry?.trainedContextTokens);
    const { idleUnloadSeconds } = settings;
    return {
      model: found,
      settings,
      ask,
      residentPolicies: policies,
      ...(idleUnloadSeconds === undefined ? {} : { idleUnloadSeconds }),
    };
  }

  #settingsOf(worker: WorkerId, key: ModelKey): EffectiveSettings {
    const name = `${worker}|${key}`;
    let settings = this.#settings.get(name);
    if (!settings) {
      const levels = this.#time.start.levels(originalOf(worker), key);
      settings = effectiveSettings({ ...levels, call: this.#change.settings ?? {} }).settings;
      this.#settings.set(name, settings);
    }
    return settings;
  }

  #thereOn(worker: WorkerState, box: number): readonly ResidentThere[] {
    return [...worker.residents.values()].flatMap((resident) => {
      const model = this.#models.indexOf(resident.modelKey);
      if (model < 0) return [];
      const { tokenSeconds } = this.takes(box, resident);
      return [
        {
          box,
          model,
          resident,
          byDevice: chargedBytes(resident.need, resident.contract, resident.measured?.byDevice),
          ...(tokenSeconds === undefined ? {} : { tokenSeconds }),
        },
      ];
    });
  }

  #outsideOf(): readonly Outside[] {
    const boxes = new Map(this.workers.map((w, box) => [w.workerId, box]));
    return this.#time.outside.flatMap(({ atMs, workerId, what }): readonly Outside[] => {
      const box = boxes.get(workerId);
      if (box === undefined) return [];
      if ('ends' in what) {
        const model = this.#models.indexOf(what.ends);
        return model < 0 ? [] : [{ atMs, box, what: { ends: model } }];
      }
      // A limit that was set in the meantime would undo the change.
      if (what.event.type === 'LimitSet' && changesRoom(this.#change)) return [];
      return [{ atMs, box, what }];
    });
  }
}

type PlanTaken = Pick<PlacementDecidedData, 'modelKey' | 'artifact' | 'contract' | 'need'>;

const NO_CLASS = placementClassOf('', {
  kind: 'chat',
  engine: { kind: 'built-in', build: '' },
  rung: 'ram-only',
  contextTokens: 0,
  slots: 1,
  kvType: 'f16',
  gpuLayers: 0,
  cpuMoeLayers: 0,
  microBatch: 0,
  flashAttention: false,
  threads: 1,
  devices: [],
});

const changesRoom = (c: WhatIfChange): boolean =>
  c.ramMaxBytes !== undefined ||
  c.vramMaxBytes !== undefined ||
  c.more !== undefined ||
  (c.devices ?? []).length > 0;

/**
 * A worker as the time begins: with the residents that were ready, and none that was on its way. One that registered
 * later is there from the beginning, without residents.
 */
function beginning(time: TimeOfLog, end: WorkerState): WorkerState {
  const start = time.start.workers.find((w) => w.workerId === end.workerId);
  const known = start?.registered && start.ramBytes !== undefined ? start : undefined;
  const worker = known ?? { ...end, residents: new Map<Resident['residentId'], Resident>() };
  const foreign = new Map(worker.foreign);
  for (const id of [RAM, ...acceleratorsOf(worker)]) {
    const bytes = end.foreign.get(id);
    if (!foreign.has(id) && bytes !== undefined) foreign.set(id, bytes);
  }
  const ready = [...worker.residents].filter(([, r]) => r.phase === 'ready' && r.leaving === undefined);
  return {
    ...worker,
    lost: false,
    foreign,
    residents: new Map(ready),
    openDecisions: new Map(),
    failedPlans: new Map(),
  };
}

/** Without the residents that would not fit a worker that has become smaller, the longest there first to stay. */
function fitting(worker: WorkerState): WorkerState {
  const left = new Map<DeviceId, number>();
  for (const id of [RAM, ...acceleratorsOf(worker)]) left.set(id, tierOf(worker, id)?.limitBytes ?? 0);
  const stay = [...worker.residents].filter(([, { need, contract, measured }]) => {
    const bytes = chargedBytes(need, contract, measured?.byDevice).map(
      (b) => [b.deviceId, sumOf(b)] as const,
    );
    if (bytes.some(([id, n]) => n > (left.get(id) ?? 0))) return false;
    for (const [id, n] of bytes) left.set(id, (left.get(id) ?? 0) - n);
    return true;
  });
  return stay.length === worker.residents.size ? worker : { ...worker, residents: new Map(stay) };
}

/** What a resident is charged with: measured on cards, and in RAM when it computes there; else as planned. */
function chargedBytes(
  need: readonly NeedTerm[],
  contract: Contract,
  measured: readonly DeviceBytes[] | undefined,
): readonly DeviceBytes[] {
  const devices = new Set<DeviceId>([RAM, ...contract.devices]);
  return [...devices].map((deviceId) => {
    const was = measured?.find((d) => d.deviceId === deviceId);
    if (was && (deviceId !== RAM || contract.gpuLayers === 0)) return was;
    const sum = (...terms: readonly NeedTermName[]): number =>
      need.reduce(
        (bytes, t) => bytes + (t.deviceId === deviceId && terms.includes(t.term) ? (t.bytes ?? 0) : 0),
        0,
      );
    return {
      deviceId,
      weightsBytes: sum('weights', 'adapter', 'projector'),
      kvBytes: sum('kv', 'state'),
      computeBytes: sum('compute'),
      processBytes: sum('process', 'promptCache'),
    };
  });
}
