import { windowlessKey } from '#domain/history/history.js';
import { classKey, type Contract, placementClassOf } from '#domain/placement-terms.js';
import { admit, neverFits } from './admit.js';
import { AUTO_TOKENS, chooseContext, isBarred } from './context.js';
import { claimCores, type CoreClaim } from './cores.js';
import { rememberedFailure } from './failures.js';
import { DEFAULT_MICRO_BATCH, whyKvTypeRefused } from './kv.js';
import { offloadOrderOf, type Shape } from './ladder.js';
import { type Layout, layoutOf } from './layout.js';
import { needOf } from './need.js';
import { forecastOf, type Plan, type Verdict } from './plan.js';
import type { Snapshot } from './snapshot.js';

type Claim = Extract<CoreClaim, { ok: true }>;

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
  // Sharing a core for a while is better than a wait without end behind a call that does not end.
  const cores = withBusy ? { ...snapshot.cores, free: Math.max(1, snapshot.cores.free) } : snapshot.cores;
  const claim = claimCores(input.worker, cores, holdsWeightsInRam(shape), input.settings);
  if (!claim.ok) return { kind: 'blocked', shape, reason: claim.reason };
  return overContexts(snapshot, shape, claim, withBusy);
}

const holdsWeightsInRam = (shape: Shape): boolean => shape.rung !== 'gpu-only' && shape.rung !== '4bit';

function contextsOf(snapshot: Snapshot, shape: Shape): readonly number[] {
  const { input } = snapshot;
  const trained = shape.artifact.geometry?.trainedContextTokens;
  if (input.model.kind !== 'chat') return [trained ?? 512];
  const replaced = snapshot.own.filter((r) => r.artifact === shape.artifact.label);
  return chooseContext({
    ask: input.ask.context,
    trainedTokens: trained ?? AUTO_TOKENS,
    callTokens: snapshot.callTokens,
    ...(snapshot.p99Tokens === undefined ? {} : { p99Tokens: snapshot.p99Tokens }),
    replacedTokens: Math.max(0, ...replaced.map((r) => r.contract.contextTokens)),
  });
}

function overContexts(snapshot: Snapshot, shape: Shape, claim: Claim, withBusy: boolean): Verdict {
  let least = 0;
  let largestFound = false;
  let worst: Verdict | undefined;
  let never: Extract<Verdict, { kind: 'never' }> | undefined;
  const keep = (verdict: Verdict): void => {
    if (!worst || (worst.kind === 'failed' && verdict.kind === 'blocked')) worst = verdict;
  };
  for (const contextTokens of contextsOf(snapshot, shape)) {
    if (largestFound && contextTokens < least) break;
    const arranged = arrange(snapshot, shape, contextTokens, claim);
    if (arranged.kind !== 'plan') {
      if (arranged.kind === 'same') return { kind: 'same', shape, reason: arranged.reason };
      if (arranged.kind === 'blocked') keep({ kind: 'blocked', shape, reason: arranged.reason });
      else never ??= { kind: 'never', shape, reason: arranged.reason, code: 'model_cannot_fit' };
      continue;
    }
    const { plan } = arranged;
    const tooLarge = neverFits(snapshot, plan);
    if (tooLarge !== undefined) {
      never = { kind: 'never', plan, shape, reason: tooLarge, code: 'model_cannot_fit' };
      continue;
    }
    const barred = barredReason(snapshot, plan);
    const remembered = rememberedFailure(
      snapshot.input.worker,
      { modelKey: snapshot.input.model.modelKey, artifact: shape.artifact.label, contract: plan.contract },
      snapshot.roomList,
      snapshot.input.nowMs,
    );
    if (remembered) {
      keep({ kind: 'failed', plan, shape, remembered });
      if (remembered.terminal) break;
      continue;
    }
    if (barred !== undefined) {
      keep({ kind: 'blocked', plan, shape, reason: barred });
      continue;
    }
    if (!largestFound) {
      largestFound = true;
      least = Math.min(snapshot.callTokens, contextTokens);
    }
    const verdict = verdictOf(snapshot, plan, withBusy);
    if (verdict.kind === 'admitted') return verdict;
    keep(verdict);
  }
  return (
    worst ??
    never ?? { kind: 'never', shape, reason: 'no context can be offered', code: 'context_length_exceeded' }
  );
}

function verdictOf(snapshot: Snapshot, plan: Plan, withBusy: boolean): Verdict {
  const { shape } = plan;
  const admission = admit(snapshot, plan, withBusy);
  switch (admission.kind) {
    case 'never':
      return { kind: 'never', plan, shape, reason: admission.reason, code: 'model_cannot_fit' };
    case 'blocked':
      return {
        kind: 'blocked',
        plan,
        shape,
        reason: admission.reason,
        ...(admission.freeInSeconds === undefined ? {} : { freeInSeconds: admission.freeInSeconds }),
      };
    case 'fits':
      return {
        kind: 'admitted',
        plan,
        victims: admission.victims,
        exact: admission.exact,
        forecast: forecastOf(snapshot, plan, admission.readyInSeconds),
        reason: admission.reason,
      };
  }
}

function barredReason(snapshot: Snapshot, plan: Plan): string | undefined {
  const klass = placementClassOf(plan.shape.artifact.label, plan.contract);
  const barred = snapshot.input.history.barred.get(windowlessKey(klass));
  if (!isBarred(barred, klass.contextTokens, snapshot.roomList)) return undefined;
  return `the engine refused ${barred?.contextTokens ?? 0} tokens with no less room than now: ${barred?.reason ?? ''}`;
}

type Arranged =
  | { readonly kind: 'plan'; readonly plan: Plan }
  | { readonly kind: 'never' | 'blocked' | 'same'; readonly reason: string };

/** The plan of a shape at a context: its layers laid out, and what it takes. */
function arrange(snapshot: Snapshot, shape: Shape, contextTokens: number, claim: Claim): Arranged {
  const plans = new Map<string, Plan>();
  const planAt = (layout: Layout): Plan => {
    const key = `${layout.gpuLayers}|${layout.cpuMoeLayers}`;
    const plan = plans.get(key) ?? planOf(snapshot, shape, contextTokens, claim, layout);
    plans.set(key, plan);
    return plan;
  };
  const result = layoutOf(snapshot, shape, (layout, deviceId) => planAt(layout).asked.get(deviceId) ?? 0);
  return result.ok ? { kind: 'plan', plan: planAt(result.layout) } : result;
}

function planOf(snapshot: Snapshot, shape: Shape, contextTokens: number, claim: Claim, layout: Layout): Plan {
  const { input } = snapshot;
  const { kvType, slots } = input.ask;
  const llamaServer = shape.engine.kind === 'llama-server';
  const contract: Contract = {
    kind: input.model.kind,
    engine: { kind: shape.engine.kind, build: shape.engine.build },
    rung: shape.rung,
    contextTokens,
    slots,
    kvType,
    ...layout,
    microBatch: DEFAULT_MICRO_BATCH,
    // A quantised V needs it; on llama-server it also keeps the work buffers from growing with the context.
    flashAttention: input.model.kind === 'chat' && (kvType !== 'f16' || llamaServer),
    threads: claim.threads,
    ...(claim.cores ? { cores: claim.cores } : {}),
    devices: shape.devices,
  };
  const need = needOf({
    artifact: shape.artifact,
    contract,
    history: input.history,
    process: snapshot.process,
    order: offloadOrderOf(shape.engine),
  });
  const projectable =
    need.fromHeader && !input.unprojectable.has(classKey(placementClassOf(shape.artifact.label, contract)));
  return { shape, contract, need, asked: projectable ? exactBytes(need.terms) : need.bytes, projectable };
}

/** Header arithmetic without estimates: what the plan takes at least, while the engine can still say exactly. */
function exactBytes(terms: Plan['need']['terms']): Plan['asked'] {
  const sums = new Map<Plan['need']['terms'][number]['deviceId'], number>();
  for (const { deviceId, bytes, basis } of terms) {
    if (basis === 'header' || basis === 'measured')
      sums.set(deviceId, (sums.get(deviceId) ?? 0) + (bytes ?? 0));
  }
  return sums;
}
