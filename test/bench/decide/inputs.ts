import { initialCalls, type CallHistory } from '#domain/calls/call-history.js';
import type { FoundModel } from '#domain/events/catalog-events.js';
import type { Geometry } from '#domain/geometry.js';
import { initialHistory, type PairHistory } from '#domain/history/history.js';
import {
  callId,
  decisionId,
  deviceId,
  type DeviceId,
  type ModelKey,
  modelKey,
  RAM,
  residentId,
  workerId,
} from '#domain/ids.js';
import { classKey, type Contract, placementClassOf } from '#domain/placement-terms.js';
import { GIB, MIB } from '#domain/units.js';
import { initialWorker } from '#domain/worker/evolve.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { PlacementInput, ResidentActivity, Ticket } from '#placement/contract.js';
import { defaultSettings } from '#placement/setting-levels.js';

/** Machines, models, histories and queues of the size that a decision is timed on. */
export interface Size {
  readonly devices: number;
  readonly residents: number;
  readonly models: number;
  readonly tickets: number;
}

export const NOW_MS = Date.parse('2026-01-02T03:04:05Z');
const WORKER = workerId('bench');
const at = (secondsAgo: number): string => new Date(NOW_MS - secondsAgo * 1000).toISOString();

/** A small generator, so that every run times the same inputs. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const geometryOf = (blocks: number, moe: boolean): Geometry => ({
  architecture: 'llama',
  kind: 'chat',
  trainedContextTokens: 131_072,
  embeddingLength: 4096,
  vocabularyTokens: 128_000,
  parameters: 8e9,
  blocks: Array.from({ length: blocks }, () => ({
    alwaysBytes: 100 * MIB,
    expertBytes: moe ? 400 * MIB : 0,
    cache: { kind: 'attention', kvHeads: 8, keyLength: 128, valueLength: 128 },
  })),
  tokenEmbeddingBytes: 500 * MIB,
  outputBytes: 500 * MIB,
  tiedOutput: false,
  otherBytes: MIB,
  expertCount: moe ? 64 : 0,
  expertUsedCount: moe ? 4 : 0,
  hasChatTemplate: true,
});

const key = (i: number): ModelKey => modelKey(`vendor/model-${i}`);

const modelOf = (i: number): FoundModel => ({
  modelKey: key(i),
  aliases: [],
  root: 'models',
  path: `model-${i}`,
  kind: 'chat',
  framework: 'gguf',
  artifacts: ['F16', 'Q8_0', 'Q4_K_M'].map((label, q) => ({
    label,
    files: [{ name: `${label}.gguf`, bytes: GIB }],
    complete: true,
    geometry: geometryOf(48 - 8 * q, i % 5 === 0),
  })),
});

const contractOn = (device: DeviceId): Contract => ({
  kind: 'chat',
  engine: { kind: 'llama-server', build: 'b1' },
  rung: 'gpu-only',
  contextTokens: 8192,
  slots: 1,
  kvType: 'f16',
  gpuLayers: 49,
  cpuMoeLayers: 0,
  microBatch: 512,
  flashAttention: true,
  threads: 4,
  devices: [device],
});

function historyOf(i: number, device: DeviceId): PairHistory {
  const klass = placementClassOf('F16', contractOn(device));
  const value = {
    class: klass,
    residentId: 'r',
    byDevice: [
      {
        deviceId: device,
        weightsBytes: 5 * GIB,
        kvBytes: GIB,
        computeBytes: 300 * MIB,
        processBytes: 400 * MIB,
      },
      { deviceId: RAM, weightsBytes: 500 * MIB, kvBytes: 0, computeBytes: 20 * MIB, processBytes: 200 * MIB },
    ],
    hostAnonymousBytes: 300 * MIB,
    hostResidentBytes: GIB,
    seconds: 12,
    predictedByDevice: [],
  };
  return {
    ...initialHistory(WORKER, key(i)),
    measured: new Map([[classKey(klass), { value, eventId: `event-${i}`, at: at(1000 + i) }]]),
    loadSeconds: new Map([[classKey(klass), [11, 12, 13]]]),
  };
}

function callsOf(i: number, next: (below: number) => number): CallHistory {
  const arrivals = Array.from({ length: 64 }, () => NOW_MS - next(7_200_000)).sort((a, b) => a - b);
  return {
    ...initialCalls(key(i)),
    arrivalsMs: arrivals,
    firstArrivalMs: arrivals[0] ?? NOW_MS,
    calls: 64,
    finished: Array.from({ length: 20 }, () => ({
      receivedAtMs: NOW_MS,
      promptTokens: 500 + next(4000),
      outputTokens: 100 + next(400),
      promptMsPerToken: 0.5,
      decodeMsPerToken: 20,
      waitSeconds: next(5),
    })),
  };
}

function residentOf(i: number, device: DeviceId, bytes: number): Resident {
  return {
    residentId: residentId(`resident-${i}`),
    decisionId: decisionId(`decision-${i}`),
    modelKey: key(i),
    artifact: 'F16',
    rung: 'gpu-only',
    ask: { context: 'auto', kvType: 'f16', slots: 1 },
    contract: contractOn(device),
    kind: 'chat',
    need: [{ deviceId: device, term: 'weights', bytes, basis: 'measured' }],
    phase: 'ready',
    measured: {
      byDevice: [{ deviceId: device, weightsBytes: bytes, kvBytes: 0, computeBytes: 0, processBytes: 0 }],
      hostAnonymousBytes: 300 * MIB,
      hostResidentBytes: GIB,
      contextTokens: 8192,
      slots: 1,
    },
    decidedAt: at(5000),
    readyAt: at(4900 - i),
  };
}

/** What differs from decision to decision. */
export interface Mix {
  /** Of a hundred residents so many have calls on them. */
  readonly busyPercent: number;
  /** The asker stands anywhere in the queue; else it is the first, for whom everything is looked at. */
  readonly anyPlace: boolean;
  /** Every decision sees a state that was folded on by an event since the last: nothing worked out for it is there. */
  readonly afterEvent: boolean;
}

/** One decision to time. Made anew for each run, so that a state that is to be new is new. */
export type MakeInput = () => PlacementInput;

export function inputsOf(size: Size, rounds: number, mix: Mix): readonly MakeInput[] {
  const next = numbers(7);
  const cards = Array.from({ length: size.devices }, (_, i) => deviceId(`gpu-${i}`));
  const card = (i: number): DeviceId => cards[i % cards.length] ?? RAM;
  const perCard = Math.ceil(size.residents / size.devices);
  const residents = Array.from({ length: size.residents }, (_, i) =>
    residentOf(i, card(i), Math.floor((78 * GIB) / perCard) - next(64) * MIB),
  );
  const activity = new Map(
    residents.map((r): [typeof r.residentId, ResidentActivity] => [
      r.residentId,
      next(100) < mix.busyPercent
        ? { callsInFlight: 1, freeInSeconds: next(30) }
        : { callsInFlight: 0, lastCallEndedAtMs: NOW_MS - next(4e6) },
    ]),
  );
  const worker: WorkerState = {
    ...initialWorker(WORKER),
    registered: true,
    name: 'bench',
    engines: [
      { kind: 'llama-server', version: '1', build: 'b1', capabilities: ['chat', 'gpu', 'moe-split'] },
    ],
    devices: cards.map((id) => ({ deviceId: id, kind: 'cuda', name: 'card', totalBytes: 80 * GIB })),
    ramBytes: 512 * GIB,
    physicalCores: 64,
    memoryBandwidth: { allGBps: 200, oneCoreGBps: 12 },
    foreign: new Map([RAM, ...cards].map((id) => [id, 0])),
    residents: new Map(residents.map((r) => [r.residentId, r])),
  };
  const histories = new Map(Array.from({ length: size.models }, (_, i) => [key(i), historyOf(i, card(i))]));
  const calls = new Map(Array.from({ length: size.models }, (_, i) => [key(i), callsOf(i, next)]));
  const queue = Array.from({ length: size.tickets }, (_, i): Ticket => ({
    callId: callId(`call-${i}`),
    modelKey: key(next(size.models)),
    arrivedAtMs: NOW_MS - next(30_000),
    arrival: i,
    background: next(10) === 0,
    promptTokens: next(3000),
    maxTokens: 500,
  }));
  return Array.from({ length: rounds }, (_, round): MakeInput => {
    // Cold: the decision that does the most work.
    const asked = size.residents + next(size.models - size.residents);
    const place = mix.anyPlace ? next(size.tickets) : 0;
    const touched = next(size.residents);
    const ticket: Ticket = {
      callId: callId('asker'),
      modelKey: key(asked),
      arrivedAtMs: NOW_MS,
      arrival: mix.anyPlace ? place : -1,
      background: false,
      promptTokens: next(20_000),
    };
    const model = modelOf(asked);
    const measured = histories.get(key(asked)) ?? initialHistory(WORKER, key(asked));
    const history = round % 2 === 0 ? measured : initialHistory(WORKER, key(asked));
    const waiting = [...queue.slice(0, place), ticket, ...queue.slice(place)];
    return () => ({
      worker: mix.afterEvent ? foldedOn(worker, residents[touched]) : worker,
      model,
      history,
      otherHistories: histories,
      calls,
      activity,
      settings: defaultSettings,
      ask: { context: 'auto', kvType: 'f16', slots: 1 },
      cause: { kind: 'call', callId: ticket.callId },
      ticket,
      queue: waiting,
      unprojectable: new Set<string>(),
      basedOn: [{ stream: 'worker-bench', revision: 1 }],
      decisionId: decisionId(`d-${round}`),
      residentId: residentId(`r-${round}`),
      nowMs: NOW_MS,
    });
  });
}

/** The state after one more event: another state, another map of residents, and one other resident. */
const foldedOn = (worker: WorkerState, touched: Resident | undefined): WorkerState => ({
  ...worker,
  revision: worker.revision + 1,
  residents: new Map(
    [...worker.residents].map(([id, r]) => [id, r.residentId === touched?.residentId ? { ...r } : r]),
  ),
});
