import type { CallHistory } from '#domain/calls/call-history.js';
import type { FoundModel } from '#domain/events/catalog-events.js';
import type { PlacementDecidedData, WorkerEvent } from '#domain/events/worker-events.js';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import { type DeviceId, type ModelKey, RAM, workerId } from '#domain/ids.js';
import {
  type Ask,
  type DeviceBytes,
  type PlacementClass,
  placementClassOf,
} from '#domain/placement-terms.js';
import { initialWorker } from '#domain/worker/evolve.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { PlacementInput } from '../contract.js';
import { DEFAULT_MICRO_BATCH } from '../kv.js';
import { loadSecondsFrom, type Scenario, type SimBox, type SimModel } from './model.js';
import { recorded } from './recorded.js';

/** What Berth knows of a modelled fleet before the first call: its workers, models and what was measured of them. */
export interface BerthFleet {
  readonly workers: readonly WorkerState[];
  readonly models: readonly FoundModel[];
  /** By worker, then by model. */
  readonly histories: readonly ReadonlyMap<ModelKey, PairHistory>[];
  readonly ask: Ask;
  /** Calls before the first one. */
  readonly calls?: ReadonlyMap<ModelKey, CallHistory>;
  /** Residents of the workers' states that are there at the beginning. */
  readonly there?: readonly ResidentThere[];
  /** What happens to the workers from outside, in the order of time. */
  readonly outside?: readonly Outside[];
  /** Where models and settings differ by worker: undefined for a model that a worker does not have. */
  readonly terms?: (box: number, model: number) => FleetTerms | undefined;
  /** Where placements differ in what they take: bytes by device, the load, and how fast a token comes. */
  readonly takes?: (box: number, data: PlacementDecidedData) => Takes;
}

export interface FleetTerms extends Pick<PlacementInput, 'model' | 'settings' | 'ask' | 'residentPolicies'> {
  /** A resident that is idle for longer goes by itself. */
  readonly idleUnloadSeconds?: number;
}

export interface Takes {
  readonly byDevice: readonly DeviceBytes[];
  readonly seconds?: number;
  readonly tokenSeconds?: number;
}

export interface ResidentThere extends Takes {
  readonly box: number;
  readonly model: number;
  readonly resident: Resident;
}

export interface Outside {
  readonly atMs: number;
  readonly box: number;
  /** A fact about the worker, or the model whose resident ends. */
  readonly what: { readonly event: WorkerEvent } | { readonly ends: number };
}

const ENGINE = { kind: 'llama-server', version: '1', build: 'sim' } as const;
const LABEL = 'F16';
/** One context for all, so that a model has one size. */
export const CONTEXT_TOKENS = 8192;
const RAM_BYTES = 2 ** 42;
const CORES = 64;

/**
 * The fleet of a scenario, each model loaded and measured once before.
 * @param believed the bytes on a card that are believed of a model before it loads here
 */
export function berthFleetOf(
  scenario: Scenario,
  slots: number,
  believed: (model: number) => number = (model) => scenario.models[model]?.cardBytes ?? 0,
): BerthFleet {
  const workers = scenario.boxes.map(workerOf);
  return {
    workers,
    models: scenario.models.map(foundModelOf),
    histories: scenario.boxes.map((box, b) => {
      const worker = workers[b] ?? initialWorker(workerId(box.name));
      return new Map(
        scenario.models.map((model, m) => [
          model.modelKey,
          measuredBefore(scenario, worker, box, model, slots, believed(m)),
        ]),
      );
    }),
    ask: { context: CONTEXT_TOKENS, kvType: 'f16', slots, allowedRungs: ['gpu-only'] },
  };
}

function workerOf(box: SimBox): WorkerState {
  return {
    ...initialWorker(workerId(box.name)),
    registered: true,
    name: box.name,
    host: box.name,
    engines: [{ ...ENGINE, capabilities: ['chat', 'gpu', 'moe-split', 'slots'] }],
    devices: box.devices.map(({ deviceId, totalBytes }) => ({
      deviceId,
      kind: 'cuda',
      name: 'card',
      totalBytes,
    })),
    // A cache of files is what RAM is free for; without one nothing modelled ever looks at RAM.
    ramBytes: box.fileCacheBytes > 0 ? box.fileCacheBytes : RAM_BYTES,
    physicalCores: CORES,
    foreign: new Map([[RAM, 0], ...box.devices.map(({ deviceId }): [DeviceId, number] => [deviceId, 0])]),
  };
}

const foundModelOf = (model: SimModel): FoundModel => ({
  modelKey: model.modelKey,
  aliases: [],
  root: 'models',
  path: model.modelKey,
  kind: 'chat',
  framework: 'gguf',
  artifacts: [
    {
      label: LABEL,
      files: [{ name: 'model.gguf', bytes: model.fileBytes }],
      complete: true,
      geometry: {
        architecture: 'llama',
        kind: 'chat',
        trainedContextTokens: CONTEXT_TOKENS,
        embeddingLength: 4096,
        vocabularyTokens: 32_000,
        parameters: model.fileBytes,
        blocks: [
          {
            alwaysBytes: model.fileBytes,
            expertBytes: 0,
            cache: { kind: 'attention', kvHeads: 8, keyLength: 128, valueLength: 128 },
          },
        ],
        tokenEmbeddingBytes: 0,
        outputBytes: 0,
        tiedOutput: false,
        otherBytes: 0,
        expertCount: 0,
        expertUsedCount: 0,
        hasChatTemplate: true,
      },
    },
  ],
});

/** The class that `decide` gives a model alone on one card. */
const classOn = (deviceId: DeviceId, slots: number): PlacementClass =>
  placementClassOf(LABEL, {
    kind: 'chat',
    engine: ENGINE,
    rung: 'gpu-only',
    contextTokens: CONTEXT_TOKENS,
    slots,
    kvType: 'f16',
    gpuLayers: 2,
    cpuMoeLayers: 0,
    microBatch: DEFAULT_MICRO_BATCH,
    flashAttention: true,
    threads: CORES / 4,
    devices: [deviceId],
  });

function measuredBefore(
  scenario: Scenario,
  worker: WorkerState,
  box: SimBox,
  model: SimModel,
  slots: number,
  bytes: number,
): PairHistory {
  let history = initialHistory(worker.workerId, model.modelKey);
  box.devices.forEach(({ deviceId }, i) => {
    history = evolveHistory(
      history,
      recorded(i, `${box.name}-${model.modelKey}-${i}`, 0, {
        type: 'LoadMeasured',
        data: {
          class: classOn(deviceId, slots),
          residentId: 'before',
          byDevice: onCard(deviceId, bytes),
          hostAnonymousBytes: 0,
          hostResidentBytes: 0,
          seconds: loadSecondsFrom(scenario.load, 'disk', model.fileBytes),
          predictedByDevice: [],
        },
      }),
    );
  });
  return history;
}

export const onCard = (deviceId: DeviceId, bytes: number): readonly DeviceBytes[] => [
  { deviceId, weightsBytes: bytes, kvBytes: 0, computeBytes: 0, processBytes: 0 },
  { deviceId: RAM, weightsBytes: 0, kvBytes: 0, computeBytes: 0, processBytes: 0 },
];
