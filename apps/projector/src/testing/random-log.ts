import type { BerthEvent, BerthEventType, Recorded } from '#domain/events/index.js';
import { SAMPLES } from '#events/testing/samples.js';

/** An event and where it goes, before a log has it. */
export interface Drawn {
  readonly stream: string;
  readonly id: string;
  readonly event: BerthEvent;
  readonly at: string;
}

/** Numbers from 0 to 1 that depend on the seed alone. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORKER_TYPES = [
  'WorkerRegistered',
  'CapacityMeasured',
  'LimitSet',
  'ForeignUseChanged',
  'BusyCoresChanged',
  'WorkerLost',
  'WorkerReturned',
  'PlacementDecided',
  'PlacementDecided',
  'PlacementRefused',
  'DecisionClosed',
  'UnloadDecided',
  'PinSet',
  'EvictionStarted',
  'ResidentEvicted',
  'EvictionFailed',
  'LoadStarted',
  'LoadStarted',
  'LoadRestarted',
  'ResidentReady',
  'ResidentReady',
  'LoadFailed',
  'ResidentCrashed',
  'ResidentAdopted',
  'ResidentRemeasured',
  'ResidentFoundGone',
  'ContextGrown',
  'CoresRepinned',
] as const satisfies readonly BerthEventType[];
const CALL_TYPES = ['CallStarted', 'CallFinished'] as const;
const CATALOG_TYPES = ['ModelFound', 'ModelChanged', 'ModelGone', 'WeightsHashed'] as const;
const MODEL_TYPES = ['LoadClaimed'] as const;
const HISTORY_TYPES = [
  'LoadProjected',
  'LoadMeasured',
  'LoadRefusedByEngine',
  'ServingMeasured',
  'ContextProbed',
] as const;
const READINGS_TYPES = ['DevicesRead'] as const;
const FLEET_TYPES = ['ApiStarted', 'ApiStopped', 'ApiLost', 'WhatIfSummarised'] as const;
const KEY_TYPES = ['KeyIssued', 'KeyRevoked'] as const;
const OPERATOR_TYPES = [
  'OperatorActionRequested',
  'OperatorActionStarted',
  'OperatorActionFinished',
] as const;
const PULL_TYPES = ['PullRequested', 'FilePulled', 'PullFinished', 'PullRefused', 'PullFailed'] as const;
const ASKED_TYPES = ['SettingsChanged', ...KEY_TYPES, ...OPERATOR_TYPES, ...PULL_TYPES] as const;

/**
 * Draws events over few ids, so that they meet: lives that begin in the middle, ends without a beginning, second ends,
 * and events that a retry wrote twice, with the same id. Nothing here is a sound log; every fold must stand it.
 */
export function drawEvents(seed: number, count: number): Drawn[] {
  const random = seeded(seed);
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const uuid = (kind: number, n: number) =>
    `${String(kind).padStart(8, '0')}-0000-7000-8000-${String(n).padStart(12, '0')}`;
  const drawn: Drawn[] = [];
  for (let n = 0; n < count; n++) {
    const again = drawn.length > 0 && random() < 0.06 ? drawn[below(drawn.length)] : undefined;
    if (again) {
      drawn.push(again);
      continue;
    }
    // A window of ids that moves on: residents and decisions end and new ones come.
    const recent = (kind: number, width: number) => uuid(kind, Math.floor(n / 12) + below(width));
    const worker = uuid(1, below(2));
    const model = pick(['owner/model', 'short', 'other/model:tag']);
    const residentId = recent(3, 4);
    const decisionId = residentId.replace(/^0+3/, '00000004');
    const others = {
      residentId,
      decisionId,
      callId: uuid(5, below(Math.max(8, Math.floor(n / 2)))),
      apiId: uuid(2, below(3)),
      modelKey: model,
      deviceId: pick(['ram', 'GPU-1', 'GPU-2']),
      resource: pick(['ram', 'cores']),
      tier: pick(['designation', 'setting']),
      value: pick([null, 1_000_000_000, 2_000_000_000]),
      bytes: (1 + below(9)) * 134_217_728,
      pinned: random() < 0.5,
      outcome: pick(['completed', 'failed', 'abandoned', 'refused']),
      newContext: pick([4096, 8192]),
      pid: 1000 + below(50),
      keyId: pick(['k1', 'k2', 'k3']),
      actionId: uuid(6, Math.floor(n / 40) + below(3)),
      pullId: uuid(7, Math.floor(n / 40) + below(3)),
      file: pick(['a.gguf', 'b.gguf']),
      state: pick(['done', 'failed']),
      takenAt: new Date(Date.UTC(2026, 0, 1) + n * 250).toISOString(),
      receivedAt: new Date(Date.UTC(2026, 0, 1) + below(50) * 600_000).toISOString(),
    };
    const type = pick([
      pick(WORKER_TYPES),
      pick(WORKER_TYPES),
      pick(CALL_TYPES),
      pick(CALL_TYPES),
      pick(CATALOG_TYPES),
      pick(HISTORY_TYPES),
      pick(FLEET_TYPES),
      pick(ASKED_TYPES),
      pick(READINGS_TYPES),
      pick(MODEL_TYPES),
    ]);
    const sample = SAMPLES[type] as Readonly<Record<string, unknown>>;
    const data: Record<string, unknown> = { ...sample };
    for (const [name, value] of Object.entries(others)) if (name in data) data[name] = value;
    if (type === 'PlacementDecided') data['victims'] = random() < 0.5 ? [] : [victim(recent(3, 6))];
    if (type === 'CapacityMeasured') data['devices'] = random() < 0.5 ? [] : [device(others.deviceId)];
    if (type === 'ContextGrown') data['to'] = others.newContext;
    if (type === 'CoresRepinned') data['to'] = [below(4)];
    if (type === 'CallStarted' && random() < 0.4) delete data['keyId'];
    if (type === 'CallFinished')
      data['stamps'] = { ...(data['stamps'] as object), receivedAt: others.receivedAt };
    if (type === 'SettingsChanged')
      data['patch'] = { [pick(['goal', 'slots'])]: pick([null, 1, 'x', { min: 1 }]), kept: below(2) };
    drawn.push({
      stream: streamOf(type, worker, model, others.keyId),
      // Another draw is of other events: an id is one event's.
      id: uuid(9000 + seed, n),
      event: { type, data } as unknown as BerthEvent,
      at: new Date(Date.UTC(2026, 0, 1) + n * 250).toISOString(),
    });
  }
  return drawn;
}

const victim = (residentId: string) => ({
  residentId,
  modelKey: 'owner/model',
  lossSeconds: 1,
  frees: [{ deviceId: 'ram', bytes: 900 }],
});
const device = (deviceId: string) => ({
  deviceId: deviceId === 'ram' ? 'GPU-1' : deviceId,
  kind: 'cuda',
  name: 'Accelerator',
  totalBytes: 24_000_000_000,
});

function streamOf(type: BerthEventType, worker: string, model: string, keyId: string): string {
  const isOneOf = (types: readonly string[]) => types.includes(type);
  if (isOneOf(CALL_TYPES)) return `calls-${model}`;
  if (isOneOf(CATALOG_TYPES)) return `catalog-${worker}`;
  if (isOneOf(MODEL_TYPES)) return `model-${model}`;
  if (isOneOf(HISTORY_TYPES)) return `history-${worker}~${model}`;
  if (type === 'WhatIfSummarised') return 'fleet-what-if';
  if (isOneOf(FLEET_TYPES)) return 'fleet-apis';
  if (isOneOf(READINGS_TYPES)) return `readings-${worker}`;
  if (isOneOf(KEY_TYPES)) return `key-${keyId}`;
  if (isOneOf(OPERATOR_TYPES)) return `operator-${worker}`;
  if (isOneOf(PULL_TYPES)) return `pull-${worker}`;
  if (type === 'SettingsChanged') return `settings-${model === 'short' ? 'fleet' : `${worker}~${model}`}`;
  return `worker-${worker}`;
}

/** As a log would give them: with positions and revisions. */
export function recorded(drawn: readonly Drawn[]): Recorded<BerthEvent>[] {
  const revisions = new Map<string, number>();
  return drawn.map(({ stream, id, event, at }, index) => {
    const revision = (revisions.get(stream) ?? -1) + 1;
    revisions.set(stream, revision);
    const position = BigInt(index + 1) * 137n;
    return {
      event,
      id,
      stream,
      revision,
      position: { commit: position, prepare: position },
      metadata: { $correlationId: id, $causationId: id, at, by: 'test', schemaVersion: 1 },
    };
  });
}
