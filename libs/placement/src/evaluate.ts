import type { Artifact } from '#domain/events/catalog-events.js';
import { planKey } from '#domain/worker/evolve.js';
import { windowlessKey } from '#domain/history/history.js';
import type { DeviceId, ModelKey } from '#domain/ids.js';
import { admit, tooLargeFor, whyTooLarge } from './admit.js';
import { AUTO_TOKENS, chooseContext, isBarred } from './context.js';
import { bandwidthCurveOf, claimCores, type CoreClaim } from './cores.js';
import { type Remembered, rememberedFailure } from './failures.js';
import { whyKvTypeRefused } from './kv.js';
import type { Shape } from './ladder.js';
import { layoutOf } from './layout.js';
import { forecastOf, type Plan, type Verdict } from './plan.js';
import { type Claim, Draft } from './plan-draft.js';
import type { Snapshot } from './snapshot.js';

/**
 * What becomes of one shape: the first of its contexts that is admitted, else the best reason why none is. A context
 * smaller than the call needs is looked at only when no larger one can ever fit.
 */
export function evaluate(snapshot: Snapshot, shape: Shape, withBusy: boolean): Verdict {
  const { input } = snapshot;
  const geometry = shape.artifact.geometry;
  const kvRefused = geometry && whyKvTypeRefused(geometry, input.ask.kvType);
  if (kvRefused !== undefined) return { kind: 'never', shape, reason: kvRefused, code: 'model_cannot_fit' };
  const trained = geometry?.trainedContextTokens;
  const asked = input.ask.context;
  if (input.model.kind === 'chat' && typeof asked === 'number' && trained !== undefined && asked > trained) {
    const reason = `a context of ${asked} tokens is asked, and the model is trained for ${trained}`;
    return { kind: 'never', shape, reason, code: 'context_length_exceeded' };
  }
  const claim = claimOf(snapshot, holdsWeightsInRam(shape), withBusy);
  if (!claim.ok) return { kind: 'blocked', shape, reason: claim.reason };
  return overContexts(snapshot, shape, claim, withBusy);
}

/** The cores of a plan: those with weights in RAM have one claim, and the others have another. */
function claimOf(snapshot: Snapshot, weightsInRam: boolean, withBusy: boolean): CoreClaim {
  const { claims, input, cores } = snapshot;
  const key = (weightsInRam ? 2 : 0) + (withBusy ? 1 : 0);
  // Sharing a core for a while is better than a wait without end behind a call that does not end.
  return (claims[key] ??= claimCores(
    input.worker,
    withBusy ? { ...cores, free: Math.max(1, cores.free) } : cores,
    weightsInRam,
    input.settings,
    bandwidthCurveOf(input.worker),
  ));
}

const holdsWeightsInRam = (shape: Shape): boolean => shape.rung !== 'gpu-only' && shape.rung !== '4bit';

/** Contexts to try of an artifact, best first. */
export function contextsOf(snapshot: Snapshot, { label, geometry }: Artifact): readonly number[] {
  const { input } = snapshot;
  const trained = geometry?.trainedContextTokens;
  if (input.model.kind !== 'chat') return [trained ?? 512];
  const trainedTokens = trained ?? AUTO_TOKENS;
  const replacedTokens = replacedContext(snapshot, label);
  for (const known of snapshot.contexts)
    if (known.trainedTokens === trainedTokens && known.replacedTokens === replacedTokens)
      return known.contexts;
  const contexts = chooseContext({
    ask: input.ask.context,
    trainedTokens,
    callTokens: snapshot.callTokens,
    ...(snapshot.p99Tokens === undefined ? {} : { p99Tokens: snapshot.p99Tokens }),
    replacedTokens,
  });
  snapshot.contexts.push({ trainedTokens, replacedTokens, contexts });
  return contexts;
}

/** The largest context of the model's own residents of an artifact, which would be replaced. */
function replacedContext({ own }: Snapshot, label: string): number {
  let largest = 0;
  for (const { artifact, contract } of own)
    if (artifact === label) largest = Math.max(largest, contract.contextTokens);
  return largest;
}

function overContexts(snapshot: Snapshot, shape: Shape, claim: Claim, withBusy: boolean): Verdict {
  const draft = new Draft(snapshot, shape, claim);
  const field = withBusy ? snapshot.withBusy : snapshot.idle;
  let least = 0;
  let largestFound = false;
  let worst: Verdict | undefined;
  let never: Extract<Verdict, { kind: 'never' }> | undefined;
  for (const contextTokens of contextsOf(snapshot, shape.artifact)) {
    if (largestFound && contextTokens < least) break;
    const layout = layoutOf(snapshot, shape, contextTokens, draft.at(contextTokens), field);
    if ('reason' in layout) {
      const { kind, reason } = layout;
      if (kind === 'same') return { kind, shape, reason };
      never ??= { kind, shape, reason, code: 'model_cannot_fit' };
      continue;
    }
    const plan = draft.plan(layout);
    const tooLarge = tooLargeFor(snapshot, plan);
    if (tooLarge !== undefined) {
      never = new TooLarge(snapshot, plan, tooLarge);
      continue;
    }
    const barred = barredReason(snapshot, plan);
    const remembered = rememberedPlan(snapshot, plan);
    if (remembered) {
      worst = worseOf(worst, { kind: 'failed', plan, shape, remembered });
      if (remembered.terminal) break;
      continue;
    }
    if (barred !== undefined) {
      worst = worseOf(worst, { kind: 'blocked', plan, shape, reason: barred });
      continue;
    }
    if (!largestFound) {
      largestFound = true;
      least = Math.min(snapshot.callTokens, contextTokens);
    }
    const verdict = verdictOf(snapshot, plan, withBusy);
    if (verdict.kind === 'admitted') return verdict;
    worst = worseOf(worst, verdict);
  }
  return (
    worst ??
    never ?? { kind: 'never', shape, reason: 'no context can be offered', code: 'context_length_exceeded' }
  );
}

/** The first is told, but a plan that has to wait is told before one that failed. */
const worseOf = (worst: Verdict | undefined, verdict: Verdict): Verdict =>
  worst && !(worst.kind === 'failed' && verdict.kind === 'blocked') ? worst : verdict;

/** Words are made for the few that are told. */
class TooLarge {
  readonly kind = 'never';
  readonly code = 'model_cannot_fit';
  readonly plan: Plan;
  readonly #snapshot: Snapshot;
  readonly #deviceId: DeviceId;

  constructor(snapshot: Snapshot, plan: Plan, deviceId: DeviceId) {
    this.#snapshot = snapshot;
    this.plan = plan;
    this.#deviceId = deviceId;
  }

  get shape(): Shape {
    return this.plan.shape;
  }

  get reason(): string {
    return whyTooLarge(this.#snapshot, this.plan, this.#deviceId);
  }
}

function verdictOf(snapshot: Snapshot, plan: Plan, withBusy: boolean): Verdict {
  const admission = admit(snapshot, plan, withBusy);
  if (admission.kind === 'blocked') return admission;
  const { victims, exact, readyInSeconds, reason } = admission;
  return {
    kind: 'admitted',
    plan,
    victims,
    exact,
    forecast: forecastOf(snapshot, plan, readyInSeconds),
    reason,
    failedBefore: failedBefore(snapshot, plan),
  };
}

function failedBefore({ input: { worker, model } }: Snapshot, plan: Plan): boolean {
  return worker.failedPlans.size > 0 && worker.failedPlans.has(planKey(triedOf(model.modelKey, plan)));
}

function rememberedPlan(snapshot: Snapshot, plan: Plan): Remembered | undefined {
  const { worker, model, nowMs } = snapshot.input;
  if (worker.failedPlans.size === 0) return undefined;
  return rememberedFailure(worker, triedOf(model.modelKey, plan), snapshot.roomList, nowMs);
}

const triedOf = (modelKey: ModelKey, { shape, contract }: Plan) => ({
  modelKey,
  artifact: shape.artifact.label,
  contract,
});

function barredReason(snapshot: Snapshot, plan: Plan): string | undefined {
  if (snapshot.input.history.barred.size === 0) return undefined;
  const { klass } = plan;
  const barred = snapshot.input.history.barred.get(windowlessKey(klass));
  if (!isBarred(barred, klass.contextTokens, snapshot.roomList)) return undefined;
  return `the engine refused ${barred?.contextTokens ?? 0} tokens with no less room than now: ${barred?.reason ?? ''}`;
}
