import type { CallEvent } from '#domain/events/call-events.js';
import type { FoundModel } from '#domain/events/catalog-events.js';
import type { Recorded } from '#domain/events/envelope.js';
import type { BerthEvent } from '#domain/events/index.js';
import type { PlacementDecidedData, WorkerEvent } from '#domain/events/worker-events.js';
import type { PairHistory } from '#domain/history/history.js';
import { type ModelKey, type ResidentId, workerId, type WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { LevelPatches } from '../setting-levels.js';
import { FoldedLog } from './folded-log.js';
import { captureDecision, type CapturedDecision } from './reproduce.js';
import { SeenCalls } from './seen-calls.js';

/** What the streams said at one moment. */
export interface Moment {
  readonly workers: readonly WorkerState[];
  readonly modelsOn: ReadonlyMap<WorkerId, ReadonlyMap<ModelKey, FoundModel>>;
  readonly histories: ReadonlyMap<WorkerId, ReadonlyMap<ModelKey, PairHistory>>;
  readonly levels: (worker: WorkerId | undefined, model: ModelKey) => LevelPatches;
}

/** A resident that was placed in the time, or before it and was still there. */
export interface LoggedResident {
  readonly workerId: WorkerId;
  readonly data: Pick<PlacementDecidedData, 'modelKey' | 'artifact' | 'contract' | 'need' | 'residentId'>;
}

export interface LoggedLoad {
  readonly workerId: WorkerId;
  readonly modelKey: ModelKey;
  readonly residentId: ResidentId;
  readonly seconds: number;
  readonly failed: boolean;
}

/** Something about a worker that no policy chose. */
export interface LoggedOutside {
  readonly atMs: number;
  readonly workerId: WorkerId;
  readonly what: { readonly event: WorkerEvent } | { readonly ends: ModelKey };
}

/** One stretch of the log, with the state before it: what a what-if is made from. */
export interface TimeOfLog {
  readonly fromMs: number;
  readonly toMs: number;
  readonly start: Moment;
  readonly end: Moment;
  readonly calls: SeenCalls;
  readonly decisions: readonly CapturedDecision[];
  readonly residents: ReadonlyMap<ResidentId, LoggedResident>;
  readonly loads: readonly LoggedLoad[];
  readonly evictions: number;
  readonly outside: readonly LoggedOutside[];
  readonly settingsChanged: number;
}

/** Collects a stretch of the log. All but calls must come from the log's beginning; calls from some time before it. */
export class TimeOfLogBuilder {
  readonly #log = new FoldedLog();
  readonly #calls = new SeenCalls();
  readonly #decisions: CapturedDecision[] = [];
  readonly #residents = new Map<ResidentId, LoggedResident>();
  readonly #loading = new Map<ResidentId, { readonly of: LoggedResident; readonly startedMs: number }>();
  readonly #loads: LoggedLoad[] = [];
  /** Seconds from the start of the process, as the agent measured them; an event of a load is written a little later. */
  readonly #measured = new Map<string, number>();
  readonly #outside: LoggedOutside[] = [];
  readonly #fromMs: number;
  readonly #toMs: number;
  #evictions = 0;
  #settingsChanged = 0;
  #start: Moment | undefined;

  constructor(fromMs: number, toMs: number) {
    this.#fromMs = fromMs;
    this.#toMs = toMs;
  }

  get calls(): number {
    return this.#calls.size;
  }

  add(recorded: Recorded<BerthEvent>): void {
    const { stream, event, metadata } = recorded;
    if (stream.startsWith('calls-')) {
      this.#calls.add(event as CallEvent);
      return;
    }
    const atMs = Date.parse(metadata.at);
    if (atMs >= this.#toMs) return;
    if (atMs >= this.#fromMs) {
      this.#start ??= momentOf(this.#log);
      const decision = captureDecision(this.#log, recorded);
      if (decision) this.#decisions.push(decision);
      if (event.type === 'SettingsChanged') this.#settingsChanged += 1;
    }
    if (event.type === 'LoadMeasured') this.#measured.set(event.data.residentId, event.data.seconds);
    if (stream.startsWith('worker-'))
      this.#note(workerId(stream.slice('worker-'.length)), recorded as Recorded<WorkerEvent>, atMs);
    this.#log.fold(recorded);
  }

  finish(): TimeOfLog {
    const end = momentOf(this.#log);
    return {
      fromMs: this.#fromMs,
      toMs: this.#toMs,
      start: this.#start ?? end,
      end,
      calls: this.#calls,
      decisions: this.#decisions,
      residents: this.#residents,
      loads: this.#loads.map((load) => ({
        ...load,
        seconds: this.#measured.get(load.residentId) ?? load.seconds,
      })),
      evictions: this.#evictions,
      outside: this.#outside,
      settingsChanged: this.#settingsChanged,
    };
  }

  #note(id: WorkerId, { event }: Recorded<WorkerEvent>, atMs: number): void {
    const inTime = atMs >= this.#fromMs;
    const outside = (what: LoggedOutside['what']): void => {
      if (inTime) this.#outside.push({ atMs, workerId: id, what });
    };
    switch (event.type) {
      case 'PlacementDecided':
        this.#residents.set(event.data.residentId, { workerId: id, data: event.data });
        return;
      case 'LoadStarted': {
        const of = this.#residents.get(event.data.residentId);
        if (of) this.#loading.set(event.data.residentId, { of, startedMs: atMs });
        return;
      }
      case 'ResidentReady':
        this.#loaded(event.data.residentId, atMs, inTime, false);
        return;
      case 'LoadFailed':
        this.#loaded(event.data.residentId, atMs, inTime, event.data.class !== 'cancelled');
        this.#gone(event.data.residentId, inTime);
        return;
      case 'ResidentEvicted': {
        const { residentId, reason } = event.data;
        if (inTime && reason === 'room') this.#evictions += 1;
        const key = this.#gone(residentId, inTime);
        if (key !== undefined && reason !== 'room' && reason !== 'contract' && reason !== 'idle')
          outside({ ends: key });
        return;
      }
      case 'ResidentCrashed':
      case 'ResidentFoundGone': {
        const key = this.#gone(event.data.residentId, inTime);
        if (key !== undefined) outside({ ends: key });
        return;
      }
      case 'DecisionClosed':
        return;
      case 'LimitSet':
      case 'ForeignUseChanged':
      case 'PinSet':
        outside({ event });
        return;
      case 'WorkerRegistered':
      case 'WorkerLost':
      case 'WorkerReturned':
      case 'CapacityMeasured':
      case 'BusyCoresChanged':
      case 'PlacementRefused':
      case 'UnloadDecided':
      case 'EvictionStarted':
      case 'EvictionFailed':
      case 'LoadRestarted':
      case 'ResidentRemeasured':
      case 'ResidentAdopted':
      case 'ContextGrown':
      case 'CoresRepinned':
        return;
    }
  }

  #loaded(id: ResidentId, atMs: number, inTime: boolean, failed: boolean): void {
    const loading = this.#loading.get(id);
    this.#loading.delete(id);
    if (!loading || !inTime) return;
    const { of, startedMs } = loading;
    const seconds = Math.max(0, atMs - startedMs) / 1000;
    this.#loads.push({
      workerId: of.workerId,
      modelKey: of.data.modelKey,
      residentId: id,
      seconds,
      failed,
    });
  }

  /** Residents that went before the time are forgotten. */
  #gone(id: ResidentId, inTime: boolean): ModelKey | undefined {
    const key = this.#residents.get(id)?.data.modelKey;
    if (!inTime) this.#residents.delete(id);
    return key;
  }
}

function momentOf(log: FoldedLog): Moment {
  const { workers } = log;
  const modelsOn = new Map(workers.map(({ workerId: id }) => [id, log.modelsOn(id)]));
  const levels = new Map<string, LevelPatches>();
  for (const [id, models] of modelsOn)
    for (const key of models.keys()) levels.set(`${id}~${key}`, log.levels(id, key));
  const fleet = log.levels(undefined, '' as ModelKey);
  return {
    workers,
    modelsOn,
    histories: new Map(workers.map(({ workerId: id }) => [id, log.histories(id)])),
    levels: (worker, model) => levels.get(`${worker ?? ''}~${model}`) ?? fleet,
  };
}
