import { type CallHistory, initialCalls } from '#domain/calls/call-history.js';
import type { Artifact, FoundModel } from '#domain/events/catalog-events.js';
import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import type { BlockKind, Geometry } from '#domain/geometry.js';
import { initialHistory, type PairHistory } from '#domain/history/history.js';
import {
  callId,
  decisionId,
  type DeviceId,
  deviceId,
  type ModelKey,
  modelKey,
  RAM,
  residentId,
  workerId,
} from '#domain/ids.js';
import {
  type Ask,
  classKey,
  type Contract,
  type DeviceBytes,
  type NeedTerm,
  placementClassOf,
} from '#domain/placement-terms.js';
import { GIB, MIB } from '#domain/units.js';
import { initialWorker } from '#domain/worker/evolve.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { PlacementInput, Ticket } from '../contract.js';
import { defaultSettings } from '../setting-levels.js';
import { NOTHING_PROJECTS } from '../unprojectable.js';

/** Builders for tests: a small machine without accelerator, and models that fit it. Not exported by the library. */

export const NOW_MS = Date.parse('2026-01-02T03:04:05.000Z');
export const WORKER = workerId('worker-1');
export const isoBefore = (seconds: number): string => new Date(NOW_MS - seconds * 1000).toISOString();

export const attention = (kvHeads = 2, length = 64): BlockKind => ({
  kind: 'attention',
  kvHeads,
  keyLength: length,
  valueLength: length,
});

export function geometry(over: Partial<Geometry> = {}): Geometry {
  return {
    architecture: 'llama',
    kind: 'chat',
    trainedContextTokens: 8192,
    embeddingLength: 256,
    vocabularyTokens: 512,
    parameters: 1_000_000,
    blocks: Array.from({ length: 4 }, () => ({
      alwaysBytes: 16 * MIB,
      expertBytes: 0,
      cache: attention(),
    })),
    tokenEmbeddingBytes: 4 * MIB,
    outputBytes: 4 * MIB,
    tiedOutput: false,
    otherBytes: 0,
    expertCount: 0,
    expertUsedCount: 0,
    hasChatTemplate: true,
    ...over,
  };
}

export const artifact = (over: Partial<Artifact> = {}): Artifact => ({
  label: 'F16',
  files: [{ name: 'model.gguf', bytes: 72 * MIB }],
  complete: true,
  geometry: geometry(),
  ...over,
});

export const model = (key: string, over: Partial<FoundModel> = {}): FoundModel => ({
  modelKey: modelKey(key),
  aliases: [],
  root: 'models',
  path: key,
  kind: 'chat',
  framework: 'gguf',
  artifacts: [artifact()],
  ...over,
});

export const BUILT_IN = {
  kind: 'built-in',
  version: '3.21.1',
  build: 'b1',
  capabilities: ['chat', 'embedding', 'rerank'],
} as const;

export const LLAMA_SERVER = {
  kind: 'llama-server',
  version: '0.4.0',
  build: 'ls1',
  capabilities: ['chat', 'embedding', 'rerank', 'gpu', 'moe-split', 'tools', 'slots', 'vision'],
} as const;

/** Registered, 4 cores, RAM limit as given, nothing foreign. */
export function worker(over: Partial<WorkerState> & { readonly ramMax?: number } = {}): WorkerState {
  const { ramMax, ...rest } = over;
  return {
    ...initialWorker(WORKER),
    registered: true,
    name: 'box',
    host: 'box',
    engines: [BUILT_IN],
    ramBytes: 8 * GIB,
    physicalCores: 4,
    limits: {
      designation: new Map(ramMax === undefined ? [] : [[RAM, ramMax]]),
      setting: new Map(),
    },
    foreign: new Map([[RAM, 0]]),
    revision: 7,
    ...rest,
  };
}

export const contract = (over: Partial<Contract> = {}): Contract => ({
  kind: 'chat',
  engine: { kind: 'built-in', build: 'b1' },
  rung: 'ram-only',
  contextTokens: 8192,
  slots: 1,
  kvType: 'f16',
  gpuLayers: 0,
  cpuMoeLayers: 0,
  microBatch: 512,
  flashAttention: false,
  threads: 1,
  devices: [],
  ...over,
});

export const ask = (over: Partial<Ask> = {}): Ask => ({ context: 'auto', kvType: 'f16', slots: 1, ...over });

export const ramBytes = (
  weightsBytes: number,
  kvBytes = 0,
  computeBytes = 0,
  processBytes = 0,
): DeviceBytes => ({
  deviceId: RAM,
  weightsBytes,
  kvBytes,
  computeBytes,
  processBytes,
});

export interface ResidentOver extends Partial<Resident> {
  readonly bytes?: number;
  readonly device?: DeviceId;
}

/** A ready resident that holds `bytes` on one device (RAM unless said), ready for an hour. */
export function resident(key: string, over: ResidentOver = {}): Resident {
  const { bytes = 100 * MIB, device = RAM, ...rest } = over;
  const onCard = device !== RAM;
  const need: readonly NeedTerm[] = [{ deviceId: device, term: 'weights', bytes, basis: 'measured' }];
  return {
    residentId: residentId(`resident-of-${key}`),
    decisionId: decisionId(`decision-of-${key}`),
    modelKey: modelKey(key),
    artifact: 'F16',
    rung: onCard ? 'gpu-only' : 'ram-only',
    ask: ask(),
    contract: onCard ? contract({ rung: 'gpu-only', gpuLayers: 5, devices: [device] }) : contract(),
    kind: 'chat',
    need,
    phase: 'ready',
    measured: {
      byDevice: [{ deviceId: device, weightsBytes: bytes, kvBytes: 0, computeBytes: 0, processBytes: 0 }],
      hostAnonymousBytes: 0,
      hostResidentBytes: onCard ? 0 : bytes,
      contextTokens: 8192,
      slots: 1,
    },
    decidedAt: isoBefore(3700),
    loadStartedAt: isoBefore(3690),
    readyAt: isoBefore(3600),
    ...rest,
  };
}

export const residents = (...list: readonly Resident[]): WorkerState['residents'] =>
  new Map(list.map((r) => [r.residentId, r]));

export const ticket = (key: string, over: Partial<Ticket> = {}): Ticket => ({
  callId: callId(`call-to-${key}`),
  modelKey: modelKey(key),
  arrivedAtMs: NOW_MS,
  arrival: 1,
  background: false,
  promptTokens: 20,
  ...over,
});

export function history(key: string, over: Partial<PairHistory> = {}): PairHistory {
  return { ...initialHistory(WORKER, modelKey(key)), ...over };
}

/** A history in which the plan was loaded and measured. */
export function measuredHistory(
  key: string,
  plan: Contract,
  byDevice: readonly DeviceBytes[],
  over: { readonly seconds?: number; readonly eventId?: string; readonly artifact?: string } = {},
): PairHistory {
  const { seconds = 2, eventId = `measured-${key}`, artifact: label = 'F16' } = over;
  const klass = placementClassOf(label, plan);
  const value = {
    class: klass,
    residentId: 'r',
    byDevice,
    hostAnonymousBytes: 0,
    hostResidentBytes: 0,
    seconds,
    predictedByDevice: [],
  };
  return history(key, {
    measured: new Map([[classKey(klass), { value, eventId, at: isoBefore(100) }]]),
    loadSeconds: new Map([[classKey(klass), [seconds]]]),
  });
}

export const calls = (key: string, over: Partial<CallHistory> = {}): CallHistory => ({
  ...initialCalls(modelKey(key)),
  ...over,
});

/** A call to a model on the small machine. By default the engine was asked and could not project. */
export function input(key: string, over: Partial<PlacementInput> = {}): PlacementInput {
  const asker = over.ticket ?? ticket(key);
  return {
    worker: worker(),
    model: model(key),
    history: history(key),
    otherHistories: new Map<ModelKey, PairHistory>(),
    calls: new Map<ModelKey, CallHistory>(),
    activity: new Map(),
    settings: defaultSettings,
    ask: ask(),
    cause: { kind: 'call', callId: asker.callId },
    ticket: asker,
    queue: [asker],
    unprojectable: EVERYTHING,
    basedOn: [{ stream: 'worker-worker-1', revision: 7 }],
    decisionId: decisionId('decision-1'),
    residentId: residentId('resident-1'),
    nowMs: NOW_MS,
    ...over,
  };
}

/** The engine was asked about every class, and could not say. */
export const EVERYTHING = NOTHING_PROJECTS;

export function decidedOf(outcome: { readonly kind: string }): PlacementDecidedData {
  if (outcome.kind !== 'decided' || !('data' in outcome))
    throw new Error(`expected a decision, got ${JSON.stringify(outcome)}`);
  return outcome.data as PlacementDecidedData;
}

export const gpu = deviceId;
