import type { Considered, PlacementRefusedData } from '#domain/events/worker-events.js';
import { berthError, type ErrorCode, ERROR_CODES } from '#domain/errors.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import { formatBytes } from '#domain/units.js';
import type { PlacementOutcome } from './contract.js';
import { clip, type Verdict } from './plan.js';
import type { NotOffered } from './ladder.js';
import { waitedSeconds } from './queue.js';
import type { Snapshot } from './snapshot.js';
import { count } from './text.js';
import { workingOf } from './working.js';

/** A Retry-After is never longer. */
const LONGEST_RETRY_SECONDS = 60;
const UNKNOWN_RETRY_SECONDS = 15;

export const retryAfter = (seconds: number | undefined): number =>
  Math.min(LONGEST_RETRY_SECONDS, Math.max(1, Math.ceil(seconds ?? UNKNOWN_RETRY_SECONDS)));

export function refused(
  snapshot: Snapshot,
  considered: readonly Considered[],
  code: ErrorCode,
  reason: string,
  seconds?: number,
): Extract<PlacementOutcome, { kind: 'refused' }> {
  const data = refusalData(snapshot, considered, code, reason);
  const error = berthError(code, reason, {
    ...(code === 'invalid_request' ? { param: 'model' } : {}),
    details: { worker: snapshot.input.worker.name, model: snapshot.input.model.modelKey, room: data.room },
    ...(ERROR_CODES[code].retry ? { retryAfterSeconds: retryAfter(seconds) } : {}),
  });
  return { kind: 'refused', data, error };
}

export function refusalData(
  snapshot: Snapshot,
  considered: readonly Considered[],
  code: ErrorCode,
  reason: string,
): PlacementRefusedData {
  return {
    ...workingOf(snapshot, considered),
    decisionId: snapshot.input.decisionId,
    code,
    reason: clip(reason),
    count: 1,
  };
}

/** The ticket stays, until it has waited as long as it may: then it fails, and says what holds the room. */
export function waitOrTimeOut(
  snapshot: Snapshot,
  considered: readonly Considered[],
  reason: string,
  freeInSeconds?: number,
): PlacementOutcome {
  const { ticket, nowMs, settings, model, worker } = snapshot.input;
  const waited = ticket ? waitedSeconds(ticket, nowMs) : 0;
  if (ticket && waited >= settings.maxWaitSeconds) {
    const text = `${model.modelKey} found no place on ${worker.name} within ${settings.maxWaitSeconds} s: ${reason}`;
    return refused(snapshot, considered, 'placement_timeout', text, freeInSeconds);
  }
  return {
    kind: 'wait',
    reason,
    ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
    refusal: refusalData(snapshot, considered, 'placement_timeout', reason),
  };
}

/**
 * Nothing can be placed and nothing is waited for: the most telling reason, that of the best artifact first.
 * @param otherwise what could be had if every rung were allowed, and how to ask for it; asked when none is offered
 */
export function refusalOf(
  snapshot: Snapshot,
  considered: readonly Considered[],
  verdicts: readonly Verdict[],
  notOffered: readonly NotOffered[],
  otherwise: () => string,
): PlacementOutcome {
  const { model, worker } = snapshot.input;
  const failed = verdicts.filter((v) => v.kind === 'failed');
  const [soonest] = failed
    .filter((v) => v.remembered.terminal === undefined)
    .sort((a, b) => a.remembered.secondsLeft - b.remembered.secondsLeft);
  if (soonest) {
    const text = `${model.modelKey} (${soonest.shape.artifact.label}) ${soonest.remembered.reason}`;
    return refused(snapshot, considered, 'model_load_failed', text, soonest.remembered.secondsLeft);
  }
  const [atFault] = failed;
  if (atFault?.remembered.terminal) {
    const text = `${model.modelKey} (${atFault.shape.artifact.label}) ${atFault.remembered.reason}`;
    return refused(snapshot, considered, atFault.remembered.terminal, text);
  }
  const never = verdicts.filter((v) => v.kind === 'never');
  const fit = never.find((v) => v.code === 'model_cannot_fit') ?? never[0];
  if (fit) return refused(snapshot, considered, fit.code, cannotFit(snapshot, fit));
  const broken = notOffered.find((n) => n.terminal !== undefined);
  if (broken?.terminal) {
    const text = `${model.modelKey} (${broken.artifact.label}) cannot be loaded on ${worker.name}: ${broken.reason}`;
    return refused(snapshot, considered, broken.terminal, text);
  }
  const { allowedRungs } = snapshot.input.ask;
  const told = notOffered.filter((n) => allowedRungs?.includes(n.rung) ?? true);
  const reasons = [...new Set(told.map((n) => `${n.rung}: ${n.reason}`))].join('; ');
  return refused(
    snapshot,
    considered,
    'model_cannot_fit',
    `${model.modelKey} has no way to be placed on ${worker.name}: ${reasons}.${otherwise()}`,
  );
}

/** What comes of a model when every rung may be used, in words that end a refusal; nothing when no rung was ruled out. */
export function withEveryRung(
  snapshot: Snapshot,
  best: Extract<Verdict, { kind: 'admitted' }> | undefined,
  verdicts: readonly Verdict[],
): string {
  const { worker } = snapshot.input;
  const ways = 'leave the rung out of the call, or allow it in the settings';
  if (best) {
    const { rung, artifact } = best.plan.shape;
    const figures = [...best.plan.asked]
      .filter(([, bytes]) => bytes > 0)
      .map(
        ([id, bytes]) => `${formatBytes(bytes)} of ${id === RAM ? 'RAM' : id} (${freeText(snapshot, id)})`,
      );
    return ` ${artifact.label} would fit ${worker.name} as ${rung}, with ${figures.join(' and ')}: ${ways}.`;
  }
  const [next] = verdicts.filter((v) => v.kind === 'blocked' || v.kind === 'never');
  return next ? ` As ${next.shape.rung} it ${next.reason}.` : '';
}

function freeText(snapshot: Snapshot, deviceId: DeviceId): string {
  const bytes = snapshot.rooms.get(deviceId)?.roomBytes;
  return bytes === undefined ? 'its room is unknown' : `${formatBytes(bytes)} are free`;
}

function cannotFit(snapshot: Snapshot, verdict: Extract<Verdict, { kind: 'never' }>): string {
  const { model, worker } = snapshot.input;
  const at = verdict.plan ? ` at ${count(verdict.plan.contract.contextTokens)} tokens` : '';
  const next =
    verdict.code === 'context_length_exceeded'
      ? 'Ask for a smaller context.'
      : 'Raise the limit, or choose a smaller artifact, context or KV type.';
  return `${model.modelKey} (${verdict.shape.artifact.label}, ${verdict.shape.rung}) cannot be placed on ${worker.name}${at}: ${verdict.reason}. ${next}`;
}
