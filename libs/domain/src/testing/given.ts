import type { BerthEvent, Recorded } from '../events/index.js';
import type { WorkerEventData } from '../events/worker-events.js';
import { decisionId, modelKey, residentId, RAM } from '../ids.js';
import type { Ask, Contract } from '../placement-terms.js';

/** Makes events as a log would give them back: one stream, rising revisions and positions, a minute apart from 0. */
export class LogOf<E extends BerthEvent> {
  readonly recorded: Recorded<E>[] = [];
  constructor(readonly stream: string) {}

  add(event: E, options: { readonly id?: string; readonly at?: string } = {}): this {
    const revision = this.recorded.length;
    this.recorded.push({
      event,
      id: options.id ?? `event-${revision}`,
      stream: this.stream,
      revision,
      position: { commit: BigInt(revision * 100), prepare: BigInt(revision * 100) },
      metadata: {
        $correlationId: 'correlation',
        $causationId: 'causation',
        at: options.at ?? new Date(revision * 60_000).toISOString(),
        by: 'test',
        schemaVersion: 1,
      },
    });
    return this;
  }
}

export const anAsk = (over: Partial<Ask> = {}): Ask => ({
  context: 'auto',
  kvType: 'f16',
  slots: 1,
  ...over,
});

export const aContract = (over: Partial<Contract> = {}): Contract => ({
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

/** `PlacementDecided` for resident `r-<name>` by decision `d-<name>`. */
export const aDecision = (
  name: string,
  over: Partial<WorkerEventData<'PlacementDecided'>> = {},
): WorkerEventData<'PlacementDecided'> => ({
  cause: { kind: 'operator' },
  decisionId: decisionId(`d-${name}`),
  residentId: residentId(`r-${name}`),
  modelKey: modelKey(name),
  artifact: 'F16',
  rung: 'ram-only',
  ask: anAsk(),
  contract: aContract(),
  devices: [RAM],
  need: [{ deviceId: RAM, term: 'weights', bytes: 1000, basis: 'projected' }],
  room: [{ deviceId: RAM, bytes: 10_000 }],
  victims: [],
  exact: true,
  now: new Date(0).toISOString(),
  validUntil: new Date(600_000).toISOString(),
  basedOn: [],
  queue: [],
  considered: [],
  blocking: [],
  predicted: {},
  policy: { goal: 'quality', order: 'loss', version: 1 },
  ...over,
});

export const aLoadStarted = (name: string): WorkerEventData<'LoadStarted'> => ({
  residentId: residentId(`r-${name}`),
  decisionId: decisionId(`d-${name}`),
  modelKey: modelKey(name),
  artifact: 'F16',
  engine: { kind: 'built-in', version: '1', build: 'b1' },
  arguments: [],
  port: 4000,
  pid: 77,
});

export const aReady = (name: string, weightsBytes = 1000): WorkerEventData<'ResidentReady'> => ({
  residentId: residentId(`r-${name}`),
  stagedAt: new Date(0).toISOString(),
  loadedAt: new Date(1000).toISOString(),
  measured: {
    byDevice: [{ deviceId: RAM, weightsBytes, kvBytes: 0, computeBytes: 0, processBytes: 0 }],
    hostAnonymousBytes: 100,
    hostResidentBytes: weightsBytes,
    contextTokens: 8192,
    slots: 1,
  },
  computesOn: [],
  kind: 'chat',
});

export const aLoadFailed = (
  name: string,
  over: Partial<WorkerEventData<'LoadFailed'>> = {},
): WorkerEventData<'LoadFailed'> => ({
  residentId: residentId(`r-${name}`),
  class: 'out-of-memory',
  message: 'failed to allocate',
  logTail: '',
  seconds: 1,
  ...over,
});
