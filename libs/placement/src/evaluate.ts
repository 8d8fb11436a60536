import { windowlessKey } from '#domain/history/history.js';
import type { DeviceId } from '#domain/ids.js';
import { classKey, type Contract, engineBuildOf, type PlacementClass } from '#domain/placement-terms.js';
import { admit, tooLargeFor, whyTooLarge } from './admit.js';
import type { BytesByDevice } from './charges.js';
import { AUTO_TOKENS, chooseContext, isBarred } from './context.js';
import { claimCores, type CoreClaim } from './cores.js';
import { type Remembered, rememberedFailure } from './failures.js';
import { DEFAULT_MICRO_BATCH, whyKvTypeRefused } from './kv.js';
import { attachmentsOf, offloadOrderOf, type Shape } from './ladder.js';
import { type Layout, layoutOf } from './layout.js';
import { type Need, needOf } from './need.js';
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
  const { label } = shape.artifact;
  const known = snapshot.contexts.get(label);
  if (known) return known;
  const replaced = snapshot.own.filter((r) => r.artifact === label);
  const contexts = chooseContext({
    ask: input.ask.context,
    trainedTokens: trained ?? AUTO_TOKENS,
    callTokens: snapshot.callTokens,
    ...(snapshot.p99Tokens === undefined ? {} : { p99Tokens: snapshot.p99Tokens }),
    replacedTokens: Math.max(0, ...replaced.map((r) => r.contract.contextTokens)),
  });
  snapshot.contexts.set(label, contexts);
  return contexts;
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
    const tooLarge = tooLargeFor(snapshot, plan);
    if (tooLarge !== undefined) {
      const reason = (): string => whyTooLarge(snapshot, plan, tooLarge);
      never = {
        kind: 'never',
        plan,
        shape,
        get reason() {
          return reason();
        },
        code: 'model_cannot_fit',
      };
      continue;
    }
    const barred = barredReason(snapshot, plan);
    const remembered = rememberedPlan(snapshot, plan);
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
  if (admission.kind === 'blocked') {
    return {
      kind: 'blocked',
      plan,
      shape,
      // Words are made for the few that are told.
      get reason() {
        return admission.reason;
      },
      get freeInSeconds() {
        return admission.freeInSeconds;
      },
    };
  }
  return {
    kind: 'admitted',
    plan,
    victims: admission.victims,
    exact: admission.exact,
    forecast: forecastOf(snapshot, plan, admission.readyInSeconds),
    reason: admission.reason,
  };
}

function rememberedPlan(snapshot: Snapshot, { shape, contract }: Plan): Remembered | undefined {
  const { worker, model, nowMs } = snapshot.input;
  if (worker.failedPlans.size === 0) return undefined;
  const plan = { modelKey: model.modelKey, artifact: shape.artifact.label, contract };
  return rememberedFailure(worker, plan, snapshot.roomList, nowMs);
}

function barredReason(snapshot: Snapshot, plan: Plan): string | undefined {
  if (snapshot.input.history.barred.size === 0) return undefined;
  const { klass } = plan;
  const barred = snapshot.input.history.barred.get(windowlessKey(klass));
  if (!isBarred(barred, klass.contextTokens, snapshot.roomList)) return undefined;
  return `the engine refused ${barred?.contextTokens ?? 0} tokens with no less room than now: ${barred?.reason ?? ''}`;
}

type Arranged =
  | { readonly kind: 'plan'; readonly plan: Plan }
  | { readonly kind: 'never' | 'blocked' | 'same'; readonly reason: string };

/** The plan of a shape at a context: its layers laid out, and what it takes. */
function arrange(snapshot: Snapshot, shape: Shape, contextTokens: number, claim: Claim): Arranged {
  const draft = new Draft(snapshot, shape, contextTokens, claim);
  const price = (layout: Layout, deviceId: DeviceId): number => draft.asked(layout).get(deviceId) ?? 0;
  const result = layoutOf(snapshot, shape, contextTokens, price);
  return result.ok ? { kind: 'plan', plan: draft.plan(result.layout) } : result;
}

interface Priced {
  readonly layout: Layout;
  readonly klass: PlacementClass;
  readonly need: Need;
  readonly projectable: boolean;
  readonly asked: BytesByDevice;
}

/** A plan whose layers are not laid out yet: priced at the layouts that are tried, the last of which is kept. */
class Draft {
  readonly #snapshot: Snapshot;
  readonly #shape: Shape;
  readonly #contextTokens: number;
  readonly #claim: Claim;
  #last: Priced | undefined;

  constructor(snapshot: Snapshot, shape: Shape, contextTokens: number, claim: Claim) {
    this.#snapshot = snapshot;
    this.#shape = shape;
    this.#contextTokens = contextTokens;
    this.#claim = claim;
  }

  asked(layout: Layout): BytesByDevice {
    return this.#price(layout).asked;
  }

  plan(layout: Layout): Plan {
    const { need, asked, projectable, klass } = this.#price(layout);
    return { shape: this.#shape, contract: this.#contract(layout), klass, need, asked, projectable };
  }

  #price(layout: Layout): Priced {
    const last = this.#last;
    if (last?.layout.gpuLayers === layout.gpuLayers && last.layout.cpuMoeLayers === layout.cpuMoeLayers)
      return last;
    const { input, process } = this.#snapshot;
    const { artifact, engine } = this.#shape;
    const klass = this.#class(layout);
    const need = needOf({
      artifact,
      plan: klass,
      history: input.history,
      process,
      order: offloadOrderOf(engine),
      attachments: attachmentsOf(input.model, engine),
    });
    const projectable = need.fromHeader && !input.unprojectable.has(classKey(klass));
    const asked = projectable ? need.exactBytes : need.bytes;
    return (this.#last = { layout, klass, need, projectable, asked });
  }

  #class(layout: Layout): PlacementClass {
    const { artifact, engine, devices } = this.#shape;
    const { kvType, slots } = this.#snapshot.input.ask;
    const { gpuLayers, cpuMoeLayers, blocksByDevice } = layout;
    const klass = {
      artifact: artifact.label,
      devices,
      gpuLayers,
      cpuMoeLayers,
      kvType,
      contextTokens: this.#contextTokens,
      slots,
      microBatch: DEFAULT_MICRO_BATCH,
      flashAttention: this.#flashAttention(),
      engineBuild: engineBuildOf(engine),
    };
    return blocksByDevice ? { ...klass, blocksByDevice } : klass;
  }

  #contract(layout: Layout): Contract {
    const { engine, rung, devices } = this.#shape;
    const { model, ask } = this.#snapshot.input;
    const { threads, cores } = this.#claim;
    return {
      kind: model.kind,
      engine: { kind: engine.kind, build: engine.build },
      rung,
      contextTokens: this.#contextTokens,
      slots: ask.slots,
      kvType: ask.kvType,
      ...layout,
      microBatch: DEFAULT_MICRO_BATCH,
      flashAttention: this.#flashAttention(),
      threads,
      ...(cores ? { cores } : {}),
      devices,
    };
  }

  /** A quantised V needs it; on llama-server it also keeps the work buffers from growing with the context. */
  #flashAttention(): boolean {
    const { model, ask } = this.#snapshot.input;
    return model.kind === 'chat' && (ask.kvType !== 'f16' || this.#shape.engine.kind === 'llama-server');
  }
}
