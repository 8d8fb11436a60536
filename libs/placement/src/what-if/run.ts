import type { CallHistory } from '#domain/calls/call-history.js';
import type { CallEventData } from '#domain/events/call-events.js';
import { type ModelKey, RAM } from '#domain/ids.js';
import { type Rates, ratesOf } from '../predict.js';
import { BerthScheduler } from '../simulate/berth-scheduler.js';
import type { Scenario, SimCall, SimModel } from '../simulate/model.js';
import { simulate, type SimulationResult } from '../simulate/simulate.js';
import { acceleratorsOf, tierOf } from '../room.js';
import type { WhatIfChange } from './change.js';
import { type Figures, spreadOf } from './figures.js';
import { LoggedFleet } from './logged-fleet.js';
import { promptEstimate, type SeenCall } from './seen-calls.js';
import type { TimeOfLog } from './time-of-log.js';

/** Refusals that another machine might have spared; the others would be given anyhow, and are no load. */
const OF_PLACEMENT: ReadonlySet<string> = new Set([
  'model_cannot_fit',
  'placement_timeout',
  'queue_full',
  'worker_unavailable',
  'event_log_unavailable',
  'model_load_failed',
  'engine_failed',
]);

/** Before any call of a model was measured. */
type KnownRates = Required<Rates>;
const UNKNOWN_RATES: KnownRates = { promptMsPerToken: 1, decodeMsPerToken: 30, outputTokens: 100 };

/** The calls of the time that ask for a place, in order of arrival. */
export interface LoggedCalls {
  readonly calls: readonly SeenCall[];
  readonly models: readonly ModelKey[];
  /** Calls that no placement would have changed: refused for what they asked, or to no model. */
  readonly leftOut: number;
}

export function loggedCalls(time: TimeOfLog): LoggedCalls {
  const known = new Set([...time.end.modelsOn.values()].flatMap((models) => [...models.keys()]));
  const inTime = [...time.calls.all].filter(
    (c) => c.receivedAtMs >= time.fromMs && c.receivedAtMs < time.toMs,
  );
  const calls = inTime
    .filter(({ started, finished }) => {
      if (!known.has(started.modelKey)) return false;
      if (finished?.outcome === 'refused') return OF_PLACEMENT.has(finished.code ?? '');
      return (
        finished?.stamps.forwardedAt !== undefined || OF_PLACEMENT.has(finished?.code ?? 'engine_failed')
      );
    })
    .sort((a, b) => a.receivedAtMs - b.receivedAtMs);
  const models = new Set(calls.map((c) => c.started.modelKey));
  for (const { workerId, residents } of time.start.workers)
    for (const { modelKey } of residents.values())
      if (time.end.modelsOn.get(workerId)?.has(modelKey)) models.add(modelKey);
  return { calls, models: [...models].sort(), leftOut: inTime.length - calls.length };
}

export interface SimulatedTime {
  readonly scenario: Scenario;
  readonly fleet: LoggedFleet;
  readonly result: SimulationResult;
  readonly figures: Figures;
}

/** The calls of the time through `decide` and the queue, under the change. */
export function simulateTime(time: TimeOfLog, logged: LoggedCalls, change: WhatIfChange): SimulatedTime {
  const { models } = logged;
  const fleet = new LoggedFleet(time, change, models);
  const before = new Map<ModelKey, CallHistory>(
    models.map((key) => [key, time.calls.historyUntil(key, time.fromMs - 1)]),
  );
  const rates = new Map<ModelKey, KnownRates>(
    models.map((key) => [key, { ...UNKNOWN_RATES, ...ratesOf(time.calls.historyUntil(key, Infinity)) }]),
  );
  const scenario: Scenario = {
    models: models.map((key): SimModel => {
      const { promptMsPerToken, decodeMsPerToken } = rates.get(key) ?? UNKNOWN_RATES;
      const fileBytes = fleet.fileBytes(key);
      return { modelKey: key, fileBytes, cardBytes: 0, slots: 1, promptMsPerToken, decodeMsPerToken };
    }),
    boxes: fleet.workers.map((worker) => ({
      name: worker.name,
      devices: [RAM, ...acceleratorsOf(worker)].map((deviceId) => ({
        deviceId,
        totalBytes: tierOf(worker, deviceId)?.capacityBytes ?? 0,
      })),
      fileCacheBytes: 0,
    })),
    calls: logged.calls.map((call, index) =>
      simCallOf(time, fleet, call, {
        index,
        model: models.indexOf(call.started.modelKey),
        rates: rates.get(call.started.modelKey) ?? UNKNOWN_RATES,
      }),
    ),
    load: AS_MEASURED,
  };
  let evictions = 0;
  const result = simulate(
    scenario,
    (world) =>
      new BerthScheduler(world, {
        fleet: {
          workers: fleet.workers,
          models: models.flatMap((key) => fleet.model(key) ?? []),
          histories: fleet.workers.map((w) => fleet.histories(w.workerId)),
          ask: { context: 'auto', kvType: 'f16', slots: 1 },
          calls: before,
          there: fleet.there,
          outside: fleet.outside,
          terms: (box, model) => fleet.terms(box, model),
          takes: (box, data) => fleet.takes(box, data),
        },
        settings: fleet.settings,
        onPlaced: ({ victims }) => {
          evictions += victims.length;
        },
      }),
  );
  return { scenario, fleet, result, figures: figuresOf(result, models, fleet, evictions) };
}

/** Loads take what was measured of them. */
const AS_MEASURED: Scenario['load'] = {
  disk: { startSeconds: 2, bytesPerSecond: 1.5e9 },
  ram: { startSeconds: 0.6, bytesPerSecond: 12e9 },
  noise: () => 1,
};

function simCallOf(
  time: TimeOfLog,
  fleet: LoggedFleet,
  { started, finished, receivedAtMs }: SeenCall,
  place: { readonly index: number; readonly model: number; readonly rates: KnownRates },
): SimCall {
  const { maxTokens, background, group } = started;
  const took = finished && tookOf(time, fleet, finished);
  const usual = Math.min(place.rates.outputTokens, maxTokens ?? Infinity);
  return {
    index: place.index,
    model: place.model,
    atMs: receivedAtMs,
    promptTokens: finished?.tokens.prompt ?? promptEstimate(started),
    estimatedTokens: promptEstimate(started),
    outputTokens: finished?.outcome === 'completed' ? (finished.tokens.output ?? usual) : usual,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(background ? { background } : {}),
    ...(group === undefined ? {} : { group }),
    ...(took ? { took } : {}),
  };
}

function tookOf(
  time: TimeOfLog,
  fleet: LoggedFleet,
  { stamps, residentId, modelKey }: CallEventData<'CallFinished'>,
): SimCall['took'] {
  const { forwardedAt, firstByteAt, finishedAt } = stamps;
  if (forwardedAt === undefined) return undefined;
  const from = Date.parse(forwardedAt);
  const totalMs = Math.max(0, Date.parse(finishedAt) - from);
  const placed = residentId && time.residents.get(residentId);
  const worker = placed && time.end.workers.find((w) => w.workerId === placed.workerId);
  const tokenSeconds =
    worker && fleet.tokenSeconds(worker, modelKey, placed.data.artifact, placed.data.contract);
  return {
    totalMs,
    firstByteMs: firstByteAt === undefined ? totalMs : Math.max(0, Date.parse(firstByteAt) - from),
    ...(tokenSeconds === undefined ? {} : { tokenSeconds }),
  };
}

function figuresOf(
  result: SimulationResult,
  models: readonly ModelKey[],
  fleet: LoggedFleet,
  evictions: number,
): Figures {
  const served = result.calls.filter((c) => c.refused === undefined);
  const usual = models.map((key) => fleet.usualLoadSeconds(key));
  return {
    calls: result.calls.length,
    served: served.length,
    refused: result.calls.length - served.length,
    toOutputSeconds: spreadOf(served.map(({ call, endMs = call.atMs }) => (endMs - call.atMs) / 1000)),
    toFirstByteSeconds: spreadOf(
      served.map(({ call, firstByteMs = call.atMs }) => (firstByteMs - call.atMs) / 1000),
    ),
    longestWaitSeconds: served.reduce(
      (most, { call, startMs = call.atMs }) => Math.max(most, (startMs - call.atMs) / 1000),
      0,
    ),
    loads: result.loads.length,
    failedLoads: result.loads.filter((l) => l.failed).length,
    loadSeconds: result.loads.reduce((sum, l) => sum + (l.endMs - l.startMs) / 1000, 0),
    usualLoadSeconds: result.loads.reduce((sum, l) => sum + (usual[l.model] ?? 0), 0),
    evictions,
  };
}

/** What really happened, by the stamps of the calls and the events of the loads. */
export function reallyOf(time: TimeOfLog, { calls }: LoggedCalls, fleet: LoggedFleet): Figures {
  const ended = calls.flatMap(({ started, finished, receivedAtMs }) =>
    finished ? [{ started, finished, receivedAtMs }] : [],
  );
  const refused = ended.filter(({ finished }) => finished.stamps.forwardedAt === undefined).length;
  const served = ended.filter(({ finished }) => finished.stamps.forwardedAt !== undefined);
  const since = (receivedAtMs: number, at: string | undefined): readonly number[] =>
    at === undefined ? [] : [Math.max(0, Date.parse(at) - receivedAtMs) / 1000];
  const waits = served.flatMap(({ finished, receivedAtMs }) =>
    since(receivedAtMs, finished.stamps.forwardedAt),
  );
  return {
    calls: calls.length,
    served: served.length,
    refused,
    toOutputSeconds: spreadOf(
      served.flatMap(({ finished, receivedAtMs }) => since(receivedAtMs, finished.stamps.finishedAt)),
    ),
    toFirstByteSeconds: spreadOf(
      served.flatMap(({ finished, receivedAtMs }) =>
        since(receivedAtMs, finished.stamps.firstByteAt ?? finished.stamps.finishedAt),
      ),
    ),
    longestWaitSeconds: waits.reduce((a, b) => Math.max(a, b), 0),
    loads: time.loads.length,
    failedLoads: time.loads.filter((l) => l.failed).length,
    loadSeconds: time.loads.reduce((sum, l) => sum + l.seconds, 0),
    usualLoadSeconds: time.loads.reduce((sum, l) => sum + fleet.usualLoadSeconds(l.modelKey), 0),
    evictions: time.evictions,
  };
}
