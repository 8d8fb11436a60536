import { foldCalls, initialCalls, type CallHistory } from '#domain/calls/call-history.js';
import type { CallEvent } from '#domain/events/call-events.js';
import type { HistoryEvent } from '#domain/events/history-events.js';
import type { PlacementDecidedData, WorkerEvent } from '#domain/events/worker-events.js';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import { apiId, callId, type ModelKey, type ResidentId, workerId } from '#domain/ids.js';
import { type DeviceBytes, placementClassOf } from '#domain/placement-terms.js';
import { evolveWorker } from '#domain/worker/evolve.js';
import type { WorkerState } from '#domain/worker/state.js';
import { initialWorker } from '#domain/worker/evolve.js';
import type { BerthFleet } from './berth-fleet.js';
import type { CallOutcome, SimCall, SimModel } from './model.js';
import { recorded } from './recorded.js';

const API = apiId('simulation');

type Written = (stream: string, event: WorkerEvent | HistoryEvent | CallEvent, atMs: number) => void;

/** What the api would know: the folds of the log that the simulated fleet would have written. */
export class BerthBooks {
  readonly calls = new Map<ModelKey, CallHistory>();
  readonly #workers: WorkerState[];
  readonly #histories: Map<ModelKey, PairHistory>[];
  #events = 0;
  readonly #written: Written | undefined;

  /** @param written told of every event that the fleet would write, by the name of its stream */
  constructor(fleet: BerthFleet, written?: Written) {
    this.#written = written;
    this.#workers = [...fleet.workers];
    this.#histories = fleet.histories.map((of) => new Map(of));
    for (const { modelKey } of fleet.models)
      this.calls.set(modelKey, fleet.calls?.get(modelKey) ?? initialCalls(modelKey));
  }

  worker(box: number): WorkerState {
    return this.#workers[box] ?? initialWorker(workerId('nowhere'));
  }

  histories(box: number): ReadonlyMap<ModelKey, PairHistory> {
    return this.#histories[box] ?? new Map<ModelKey, PairHistory>();
  }

  decided(box: number, data: PlacementDecidedData, nowMs: number): void {
    this.#worker(box, nowMs, { type: 'PlacementDecided', data });
  }

  loadStarted(box: number, data: PlacementDecidedData, nowMs: number): void {
    const { kind, build } = data.contract.engine;
    this.#worker(box, nowMs, {
      type: 'LoadStarted',
      data: {
        residentId: data.residentId,
        decisionId: data.decisionId,
        modelKey: data.modelKey,
        artifact: data.artifact,
        engine: { kind, version: '1', build },
        arguments: [],
        port: 0,
        pid: 0,
      },
    });
  }

  /** What the log says of a worker whatever is placed on it. */
  outside(box: number, event: WorkerEvent, nowMs: number): void {
    this.#worker(box, nowMs, event);
  }

  /** @param byDevice what the agent measured */
  ready(
    box: number,
    data: PlacementDecidedData,
    byDevice: readonly DeviceBytes[],
    seconds: number,
    nowMs: number,
  ): void {
    const at = new Date(nowMs).toISOString();
    const { contextTokens, slots, kind, devices } = data.contract;
    const memory = { byDevice, hostAnonymousBytes: 0, hostResidentBytes: 0 };
    this.#worker(box, nowMs, {
      type: 'ResidentReady',
      data: {
        residentId: data.residentId,
        stagedAt: at,
        loadedAt: at,
        measured: { ...memory, contextTokens, slots },
        computesOn: devices,
        kind,
      },
    });
    this.#history(box, data.modelKey, nowMs, {
      type: 'LoadMeasured',
      data: {
        class: placementClassOf(data.artifact, data.contract),
        residentId: data.residentId,
        ...memory,
        seconds,
        predictedByDevice: [],
      },
    });
  }

  loadFailed(box: number, data: PlacementDecidedData, seconds: number, nowMs: number): void {
    const message = 'the card had not the room that the plan needed';
    this.#worker(box, nowMs, {
      type: 'LoadFailed',
      data: { residentId: data.residentId, class: 'out-of-memory', message, logTail: '', seconds },
    });
  }

  gone(box: number, residentId: ResidentId, nowMs: number): void {
    this.#worker(box, nowMs, {
      type: 'ResidentEvicted',
      data: { residentId, reason: 'room', freed: [], seconds: 0 },
    });
  }

  arrived(call: SimCall, modelKey: ModelKey): void {
    this.#call(modelKey, call.atMs, {
      type: 'CallStarted',
      data: {
        callId: simCallId(call),
        apiId: API,
        modelKey,
        endpoint: '/v1/chat/completions',
        background: call.background ?? false,
        stream: true,
        promptBytes: 4 * call.promptTokens,
        receivedAt: new Date(call.atMs).toISOString(),
      },
    });
  }

  ended(outcome: CallOutcome, model: SimModel, box: number, id: ResidentId | undefined): void {
    const { call, startMs = call.atMs, endMs = startMs, firstByteMs = startMs } = outcome;
    const timings = call.took
      ? { promptMs: firstByteMs - startMs, decodeMs: endMs - firstByteMs }
      : {
          promptMs: call.promptTokens * model.promptMsPerToken,
          decodeMs: Math.max(0, call.outputTokens - 1) * model.decodeMsPerToken,
        };
    const iso = (ms: number): string => new Date(ms).toISOString();
    const resident = id && this.worker(box).residents.get(id);
    const readyMs = resident?.readyAt === undefined ? 0 : Date.parse(resident.readyAt);
    const loading =
      resident && readyMs > call.atMs
        ? { decidedAt: iso(Math.max(call.atMs, Date.parse(resident.decidedAt))), readyAt: iso(readyMs) }
        : {};
    this.#call(model.modelKey, endMs, {
      type: 'CallFinished',
      data: {
        callId: simCallId(call),
        apiId: API,
        modelKey: model.modelKey,
        outcome: 'completed',
        ...(id === undefined ? {} : { residentId: id }),
        status: 200,
        attempts: 1,
        stamps: {
          receivedAt: iso(call.atMs),
          queuedAt: iso(call.atMs),
          ...loading,
          forwardedAt: iso(startMs),
          firstByteAt: iso(firstByteMs),
          finishedAt: iso(endMs),
        },
        tokens: { prompt: call.promptTokens, output: call.outputTokens },
        timings,
        bytesOut: 4 * call.outputTokens,
      },
    });
  }

  #worker(box: number, nowMs: number, event: WorkerEvent): void {
    const state = this.worker(box);
    this.#written?.(`worker-${state.workerId}`, event, nowMs);
    this.#workers[box] = evolveWorker(state, recorded(state.revision + 1, this.#id(), nowMs, event));
  }

  #history(box: number, key: ModelKey, nowMs: number, event: HistoryEvent): void {
    const histories = this.#histories[box];
    const id = this.worker(box).workerId;
    const state = histories?.get(key) ?? initialHistory(id, key);
    this.#written?.(`history-${id}~${key}`, event, nowMs);
    histories?.set(key, evolveHistory(state, recorded(state.revision + 1, this.#id(), nowMs, event)));
  }

  #call(key: ModelKey, nowMs: number, event: CallEvent): void {
    const state = this.calls.get(key) ?? initialCalls(key);
    this.#written?.(`calls-${key}`, event, nowMs);
    // Each is new: the ids of those that were seen need not be kept.
    this.calls.set(key, foldCalls(state, [event]));
  }

  #id(): string {
    return `e${(this.#events += 1)}`;
  }
}

export const simCallId = (call: SimCall): ReturnType<typeof callId> => callId(`c${call.index}`);
