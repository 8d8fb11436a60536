import type { Considered } from '#domain/events/worker-events.js';
import type { ModelKey } from '#domain/ids.js';
import { RUNGS } from '#domain/placement-terms.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { approvedArtifacts, whyNotReusable } from './ask.js';
import { compareText, residentsOfModel } from './charges.js';
import { callTokens } from './context.js';
import type { PlacementInput, PlacementOutcome, Ticket } from './contract.js';
import { decided } from './decided.js';
import { evaluate } from './evaluate.js';
import { ladderOf, type NotOffered, type Pins, type Shape } from './ladder.js';
import { clip, consideredOf, shapeOf, type Verdict } from './plan.js';
import { isOverdue } from './queue.js';
import { bestOf } from './rank.js';
import { refusalOf, refused, waitOrTimeOut, withEveryRung } from './refuse.js';
import { type Snapshot, snapshotOf } from './snapshot.js';
import { mostReachFirst } from './split.js';
import { worthWaitingFor } from './waiting.js';

/**
 * Decides one call or one wish for a model on one worker. Pure: the same input gives the same outcome.
 * `decided` is to be appended with the revision of the worker that the input was folded to.
 */
export function decide(input: PlacementInput): PlacementOutcome {
  const reuse = reusable(input, 'ready', callTokens(input.ticket));
  if (reuse) return { kind: 'reuse', residentId: reuse.residentId };
  const snapshot = snapshotOf(input);
  const { worker, model } = input;
  if (!worker.registered || worker.lost) {
    const text = `${worker.name || worker.workerId}, which has ${model.modelKey}, is ${worker.lost ? 'lost' : 'not registered'}`;
    return refused(snapshot, [], 'worker_unavailable', text);
  }
  const join = reusable(input, 'coming', snapshot.callTokens);
  if (join) return { kind: 'join', residentId: join.residentId };
  if (snapshot.approved.length === 0) return noArtifact(snapshot);
  const { verdicts, notOffered, considered } = lookAtAll(snapshot, false);
  const kept = keptAsItIs(input, verdicts);
  if (kept) return kept;
  const own = whyOwnStays(snapshot);
  if (own) return waitOrTimeOut(snapshot, considered(), own.reason, own.freeInSeconds);
  const ahead = whoIsAhead(input);
  if (ahead !== undefined) return waitOrTimeOut(snapshot, considered(), ahead);
  const best = bestOf(verdicts, input.settings);
  const better = best && worthWaitingFor(snapshot, best, verdicts);
  if (better) return waitOrTimeOut(snapshot, considered(), better.reason, better.freeInSeconds);
  if (best) return decided(snapshot, best, considered);
  if (input.ticket && isOverdue(input.ticket, input.nowMs, input.settings)) {
    const drained = lookAtAll(snapshot, true);
    const next = bestOf(drained.verdicts, input.settings);
    if (next) return decided(snapshot, next, drained.considered);
  }
  const blocked = verdicts.filter((v) => v.kind === 'blocked');
  const [first] = blocked;
  if (first) {
    const soonest = blocked.flatMap((v) => v.freeInSeconds ?? []);
    const seconds = soonest.length > 0 ? Math.min(...soonest) : undefined;
    const label = `${model.modelKey} (${first.shape.artifact.label}, ${first.shape.rung})`;
    return waitOrTimeOut(snapshot, considered(), `${label} ${first.reason}`, seconds);
  }
  return refusalOf(snapshot, considered(), verdicts, notOffered, () => otherwise(input));
}

/** Only when a call is refused: what it would get with every rung allowed. */
function otherwise(input: PlacementInput): string {
  if (!input.ask.allowedRungs) return '';
  const snapshot = snapshotOf({ ...input, ask: { ...input.ask, allowedRungs: RUNGS } });
  const { verdicts } = lookAtAll(snapshot, false);
  return withEveryRung(snapshot, bestOf(verdicts, input.settings), verdicts);
}

/** A resident of the model that satisfies the ask: the best artifact, then the largest context, then the id. */
function reusable(input: PlacementInput, phase: 'ready' | 'coming', tokens: number): Resident | undefined {
  // What is there says nothing of whether it can be loaded.
  if (input.cause.kind === 'probe') return undefined;
  const mine = residentsOfModel(input.worker, input.model.modelKey);
  if (mine.length === 0) return undefined;
  const approved = approvedArtifacts(input.model.artifacts, input.settings, input.ask);
  const place = (r: Resident): number => approved.findIndex((a) => a.label === r.artifact);
  return mine
    .filter((r) => {
      if ((r.phase === 'ready') !== (phase === 'ready')) return false;
      const largestTokens = approved[place(r)]?.geometry?.trainedContextTokens ?? r.contract.contextTokens;
      return whyNotReusable(r, { ask: input.ask, approved, callTokens: tokens, largestTokens }) === undefined;
    })
    .sort(
      (a, b) =>
        place(a) - place(b) ||
        b.contract.contextTokens - a.contract.contextTokens ||
        compareText(a.residentId, b.residentId),
    )[0];
}

interface Looked {
  readonly verdicts: readonly Verdict[];
  readonly notOffered: readonly NotOffered[];
  readonly considered: (chosen?: Verdict) => readonly Considered[];
}

function lookAtAll(snapshot: Snapshot, withBusy: boolean): Looked {
  const { input, approved, accelerators } = snapshot;
  const { allowedRungs } = input.ask;
  const pins = pinsOf(input);
  const steps = ladderOf({
    approved,
    kind: input.model.kind,
    engines: input.worker.engines,
    accelerators,
    together: mostReachFirst(snapshot, accelerators, withBusy ? snapshot.withBusy : snapshot.idle),
    ...(allowedRungs ? { allowedRungs } : {}),
    ...(pins ? { pins } : {}),
    extras: input.ask,
  });
  const verdicts: Verdict[] = [];
  const notOffered: NotOffered[] = [];
  /** By step: a verdict, why there is none, or nothing when an earlier shape was placed. */
  const looked: (Verdict | NotOffered)[] = [];
  for (const step of steps) {
    if (step.kind === 'not-offered') {
      notOffered.push(step.not);
      looked.push(step.not);
      continue;
    }
    if (step.shape.fallback && isPlacedBefore(step.shape, verdicts)) continue;
    const verdict = evaluate(snapshot, step.shape, withBusy);
    verdicts.push(verdict);
    looked.push(verdict);
  }
  return {
    verdicts,
    notOffered,
    considered: (chosen) =>
      looked.map((one) =>
        'kind' in one ? consideredOf(snapshot, one, one === chosen) : notOfferedLine(one),
      ),
  };
}

/** Whether an earlier shape of this artifact and rung has a place: more devices are then not looked at. */
function isPlacedBefore({ rung, artifact }: Shape, verdicts: readonly Verdict[]): boolean {
  for (let i = verdicts.length - 1; i >= 0; i--) {
    const verdict = verdicts[i];
    if (verdict?.kind !== 'admitted' && verdict?.kind !== 'same') continue;
    const shape = shapeOf(verdict);
    if (shape.rung === rung && shape.artifact.label === artifact.label) return true;
  }
  return false;
}

function pinsOf({ ask, settings }: PlacementInput): Pins | undefined {
  const { gpuBytes, ramBytes } = settings;
  const { gpuLayers, cpuMoeLayers } = ask;
  if ((gpuBytes ?? ramBytes ?? gpuLayers ?? cpuMoeLayers) === undefined) return undefined;
  return {
    ...(gpuLayers === undefined ? {} : { gpuLayers }),
    ...(cpuMoeLayers === undefined ? {} : { cpuMoeLayers }),
    ...(gpuBytes === undefined ? {} : { gpuBytes }),
    ...(ramBytes === undefined ? {} : { ramBytes }),
  };
}

const notOfferedLine = (not: NotOffered): Considered => ({
  artifact: not.artifact.label,
  rung: not.rung,
  outcome: not.terminal ? 'refused' : 'not-offered',
  reason: clip(not.reason),
});

/** A resident that satisfies all but the call's estimated length is kept when no larger context can be had. */
function keptAsItIs(input: PlacementInput, verdicts: readonly Verdict[]): PlacementOutcome | undefined {
  const ready = reusable(input, 'ready', 0);
  const short = ready ?? reusable(input, 'coming', 0);
  if (!short) return undefined;
  const larger = verdicts.some(
    (v) =>
      (v.kind === 'admitted' || v.kind === 'blocked') &&
      (v.plan?.klass.contextTokens ?? 0) > short.contract.contextTokens,
  );
  if (larger) return undefined;
  return { kind: ready ? 'reuse' : 'join', residentId: short.residentId };
}

/** A resident of the model under another ask is replaced, but never while it loads or a call is on it. */
function whyOwnStays(
  snapshot: Snapshot,
): { readonly reason: string; readonly freeInSeconds?: number } | undefined {
  const { input, own } = snapshot;
  for (const resident of own) {
    const name = `${input.model.modelKey} is there under another ask`;
    if (resident.phase !== 'ready') return { reason: `${name} and still loading; it is reloaded after that` };
    const activity = input.activity.get(resident.residentId);
    if (!activity || activity.callsInFlight === 0) continue;
    const reason = `${name} and has ${activity.callsInFlight} calls on it; it is reloaded when they have ended`;
    return activity.freeInSeconds === undefined
      ? { reason }
      : { reason, freeInSeconds: activity.freeInSeconds };
  }
  return undefined;
}

/** A ticket that is next in line and still without a place keeps its turn: room is not given to those behind it. */
function whoIsAhead(input: PlacementInput): string | undefined {
  const { ticket, queue, settings, nowMs, worker, model } = input;
  if (!ticket) return undefined;
  for (const other of queue) {
    if (other.callId === ticket.callId) return undefined;
    if (other.modelKey === model.modelKey || isPlaced(worker, other.modelKey)) continue;
    const why = whyPrecedes(other, ticket, settings, nowMs);
    if (why !== undefined) return `a call to ${other.modelKey} is ahead and waits for room: ${why}`;
  }
  return undefined;
}

function whyPrecedes(
  other: Ticket,
  ticket: Ticket,
  settings: PlacementInput['settings'],
  nowMs: number,
): string | undefined {
  if (isOverdue(other, nowMs, settings)) return `it has waited over ${settings.overdueAfterSeconds} s`;
  if (ticket.background && !other.background) return 'background calls pass none of the foreground';
  if (settings.queueOrder !== 'eta') return `the queue is ${settings.queueOrder}`;
  return undefined;
}

const isPlaced = (worker: WorkerState, modelKey: ModelKey): boolean =>
  residentsOfModel(worker, modelKey).length > 0;

function noArtifact(snapshot: Snapshot): PlacementOutcome {
  const { model, ask } = snapshot.input;
  const labels = model.artifacts.map((a) => a.label).join(', ');
  const text =
    ask.artifact === undefined
      ? `No artifact of ${model.modelKey} is allowed by the settings; it has ${labels}.`
      : `${model.modelKey} has no artifact "${ask.artifact}"; it has ${labels}.`;
  return refused(snapshot, [], 'invalid_request', text);
}
