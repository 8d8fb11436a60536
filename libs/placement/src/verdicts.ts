import type { Artifact } from '#domain/events/catalog-events.js';
import { BASES, type Basis, KV_TYPES, type KvType, type Rung } from '#domain/placement-terms.js';
import type { DeviceId, ModelKey, ResidentId } from '#domain/ids.js';
import { AUTO_TOKENS, type ContextState, contextTicks, feasibleContexts } from './context.js';
import type { PlacementInput } from './contract.js';
import { contextsOf, evaluate } from './evaluate.js';
import { headerBytes } from './header.js';
import { DEFAULT_MICRO_BATCH } from './kv.js';
import { offloadOrderOf } from './engine-choice.js';
import { ladderOf, type NotOffered, type Shape, type Step } from './ladder.js';
import { loadSeconds } from './loss.js';
import { devicesOf, type Plan, reasonOf, type Verdict } from './plan.js';
import { type Snapshot, snapshotOf } from './snapshot.js';
import { estimatedSecondsPerToken } from './speed.js';

/** One way to place a model on a worker, as it stands now: for people to look at, nothing is decided from it. */
export interface PairVerdict {
  readonly artifact: string;
  readonly rung: Rung;
  readonly kvType: KvType;
  /** `evicting`: once the named residents are gone. `unknown`: a reading is missing, or it failed and is not tried again yet. */
  readonly fits: 'now' | 'evicting' | 'never' | 'unknown';
  readonly reason: string;
  readonly contextTokens?: number;
  /** Over the contexts that are planned by themselves, and the most that fits; absent where nothing can be laid out. */
  readonly context?: { readonly state: ContextState; readonly ceilingTokens?: number };
  /** By device, with the weakest basis of its terms. */
  readonly need: readonly { readonly deviceId: DeviceId; readonly bytes: number; readonly basis: Basis }[];
  readonly room: readonly { readonly deviceId: DeviceId; readonly bytes?: number }[];
  readonly evicting: readonly { readonly residentId: ResidentId; readonly modelKey: ModelKey }[];
  readonly cores?: number;
  readonly predicted: {
    readonly loadSeconds?: number;
    readonly outputTokensPerSecond?: number;
    readonly promptTokensPerSecond?: number;
  };
}

/** Every artifact on every rung under every KV type, in the order of the ladder. */
export function verdictsOf(input: PlacementInput): readonly PairVerdict[] {
  return KV_TYPES.flatMap((kvType) => underKvType({ ...input, ask: { ...input.ask, kvType } }));
}

/** What is said of a model in one word, with the way to place it that the word is about. */
export interface ShortVerdict {
  readonly fits: PairVerdict['fits'];
  readonly artifact?: string;
  readonly rung?: Rung;
  readonly reason: string;
}

const ORDER: readonly PairVerdict['fits'][] = ['now', 'evicting', 'unknown', 'never'];

/** The better of two: what fits now before what fits after an eviction, before what nobody can say. */
export const betterVerdict = <V extends Pick<ShortVerdict, 'fits'>>(a: V, b: V): V =>
  ORDER.indexOf(b.fits) < ORDER.indexOf(a.fits) ? b : a;

/** The first way down the ladder, under the KV type that is asked, with what is busy drained. */
export function shortVerdict(input: PlacementInput): ShortVerdict {
  const snapshot = snapshotOf(input);
  let best: ShortVerdict | undefined;
  for (const step of everyStep(snapshot)) {
    if (best?.fits === 'now') break;
    const said = step.kind === 'not-offered' ? notOffered(step.not) : inShort(snapshot, step.shape);
    best = best ? betterVerdict(best, said) : said;
  }
  return best ?? { fits: 'never', reason: 'no artifact of it may be used' };
}

const notOffered = ({ artifact, rung, reason }: NotOffered): ShortVerdict => ({
  fits: 'never',
  artifact: artifact.label,
  rung,
  reason,
});

function inShort(snapshot: Snapshot, shape: Shape): ShortVerdict {
  const verdict = evaluate(snapshot, shape, true);
  const { artifact, rung } = shape;
  return { fits: fitsOf(verdict), artifact: artifact.label, rung, reason: reasonOf(verdict) };
}

function underKvType(input: PlacementInput): readonly PairVerdict[] {
  const snapshot = snapshotOf(input);
  const { kvType } = input.ask;
  const seen = new Set<string>();
  return everyStep(snapshot).flatMap((step): readonly PairVerdict[] => {
    if (step.kind === 'not-offered') {
      const { artifact, rung, reason } = step.not;
      const would = step.not.terminal === 'incompatible_engine' ? wouldTake(snapshot, artifact) : {};
      return [{ artifact: artifact.label, rung, kvType, fits: 'never', reason, ...NOTHING, ...would }];
    }
    // Other devices for the same rung are fallbacks of its first shape.
    const key = `${step.shape.rung}|${step.shape.artifact.label}`;
    if (step.shape.fallback && seen.has(key)) return [];
    seen.add(key);
    return [verdictFor(snapshot, step.shape)];
  });
}

/** Without pins and rungs that are not allowed: what could be, not what the settings leave of it. */
const everyStep = ({ approved, accelerators, input: { model, worker, ask } }: Snapshot): readonly Step[] =>
  ladderOf({ approved, kind: model.kind, engines: worker.engines, accelerators, extras: ask });

/** What is said of a folder that no engine here opens: by its headers, all of it in RAM, at the context that a plan would begin with. */
function wouldTake(
  snapshot: Snapshot,
  artifact: Artifact,
): Partial<Pick<PairVerdict, 'need' | 'contextTokens'>> {
  const { geometry } = artifact;
  const [contextTokens] = contextsOf(snapshot, artifact);
  if (!geometry || contextTokens === undefined) return {};
  const { kvType, slots } = snapshot.input.ask;
  const place = { devices: [], gpuLayers: 0, cpuMoeLayers: 0, microBatch: DEFAULT_MICRO_BATCH };
  const plan = { ...place, kvType, slots, contextTokens, flashAttention: true };
  const need = [...headerBytes(geometry, plan, 'output-first')].map(([deviceId, of]) => ({
    deviceId,
    bytes: Math.ceil(of.weightsBytes + of.kvBytes + of.stateBytes),
    basis: 'header' as const,
  }));
  return { need, contextTokens };
}

const NOTHING = { need: [], room: [], evicting: [], predicted: {} } as const;

function verdictFor(snapshot: Snapshot, shape: Shape): PairVerdict {
  const now = evaluate(snapshot, shape, false);
  // What is blocked by residents that are busy fits once they are drained.
  const drained = now.kind === 'blocked' ? evaluate(snapshot, shape, true) : now;
  const verdict = drained.kind === 'admitted' ? drained : now;
  const { plan } = verdict;
  const { kvType } = snapshot.input.ask;
  const own = snapshot.own.map(({ residentId, modelKey }) => ({ residentId, modelKey }));
  const victims = verdict.kind === 'admitted' ? verdict.victims : [];
  return {
    artifact: shape.artifact.label,
    rung: shape.rung,
    kvType,
    fits: fitsOf(verdict),
    reason: reasonOf(now),
    ...NOTHING,
    evicting: victims
      .map(({ residentId, modelKey }) => ({ residentId, modelKey }))
      .concat(victims.length > 0 ? own : []),
    ...(plan ? figuresOf(snapshot, plan) : {}),
    ...contextOf(snapshot, shape),
  };
}

function fitsOf(verdict: Verdict): PairVerdict['fits'] {
  switch (verdict.kind) {
    case 'admitted':
      return verdict.victims.length > 0 ? 'evicting' : 'now';
    case 'blocked':
    case 'failed':
      return 'unknown';
    case 'same':
    case 'never':
      return 'never';
  }
}

function figuresOf(snapshot: Snapshot, plan: Plan) {
  const { input, rates } = snapshot;
  const weakest = new Map<DeviceId, Basis>();
  for (const { deviceId, basis } of plan.need.terms) {
    const before = weakest.get(deviceId);
    if (before === undefined || BASES.indexOf(basis) > BASES.indexOf(before)) weakest.set(deviceId, basis);
  }
  const { geometry } = plan.shape.artifact;
  const order = offloadOrderOf(plan.shape.engine);
  const estimated =
    geometry && estimatedSecondsPerToken(input.worker, geometry, plan.contract, plan.contract.threads, order);
  const perSecond =
    rates.decodeMsPerToken === undefined
      ? estimated === undefined || estimated <= 0
        ? undefined
        : 1 / estimated
      : 1000 / rates.decodeMsPerToken;
  return {
    contextTokens: plan.contract.contextTokens,
    cores: plan.contract.threads,
    need: [...plan.need.bytes].map(([deviceId, bytes]) => ({
      deviceId,
      bytes,
      basis: weakest.get(deviceId) ?? ('unknown' as const),
    })),
    room: devicesOf(plan).map((deviceId) => {
      const bytes = snapshot.rooms.get(deviceId)?.roomBytes;
      return { deviceId, ...(bytes === undefined ? {} : { bytes }) };
    }),
    predicted: {
      ...(plan.need.weightsBytes > 0
        ? { loadSeconds: loadSeconds(input.history, plan.klass, plan.need.weightsBytes).seconds }
        : {}),
      ...(perSecond === undefined ? {} : { outputTokensPerSecond: perSecond }),
      ...(rates.promptMsPerToken ? { promptTokensPerSecond: 1000 / rates.promptMsPerToken } : {}),
    },
  };
}

/** Which of the contexts that are planned by themselves fit, with the busy drained. */
function contextOf(snapshot: Snapshot, shape: Shape): Pick<PairVerdict, 'context'> {
  const { input } = snapshot;
  if (input.model.kind !== 'chat') return {};
  const trained = shape.artifact.geometry?.trainedContextTokens ?? AUTO_TOKENS;
  const { state, ticks } = feasibleContexts(contextTicks(trained), (tokens) => {
    const asked = {
      ...snapshot,
      contexts: [],
      input: { ...input, ask: { ...input.ask, context: tokens } },
    };
    return evaluate(asked, shape, true).kind === 'admitted';
  });
  const ceilingTokens = ticks.at(-1);
  return { context: { state, ...(ceilingTokens === undefined ? {} : { ceilingTokens }) } };
}
