import { MOST_WORKING_BYTES } from '#domain/events/limits.js';
import type { Considered, Working } from '#domain/events/worker-events.js';
import type { CallId } from '#domain/ids.js';
import { givenOf } from './given.js';
import { clip } from './plan.js';
import type { Snapshot } from './snapshot.js';

/** Raised whenever the rules change what they would decide. */
export const POLICY_VERSION = 7;

/** A decision's working stays below 64 KiB; the rest is counted. */
export const WORKING_LIMIT_BYTES = MOST_WORKING_BYTES;
const MOST_CONSIDERED = 64;
const MOST_BLOCKING = 96;
const MOST_QUEUED = 128;

/** What a decision or a refusal says of how it was come to. */
export function workingOf(snapshot: Snapshot, considered: readonly Considered[]): Working {
  const { input } = snapshot;
  const kept = keepConsidered(considered);
  return {
    cause: input.cause,
    modelKey: input.model.modelKey,
    ask: input.ask,
    room: snapshot.roomList.map((room) => ({
      deviceId: room.deviceId,
      ...(room.roomBytes === undefined ? {} : { bytes: room.roomBytes }),
    })),
    considered: kept,
    ...(kept.length < considered.length ? { consideredLeftOut: considered.length - kept.length } : {}),
    blocking: snapshot.blocking.all
      .slice(0, MOST_BLOCKING)
      .map(({ residentId, modelKey, reason }) => ({ residentId, modelKey, reason: clip(reason) })),
    basedOn: input.basedOn,
    queue: queueOf(snapshot),
    now: new Date(input.nowMs).toISOString(),
    policy: { goal: input.settings.goal, order: input.settings.evictionOrder, version: POLICY_VERSION },
    given: givenOf(input),
  };
}

/** What was chosen and admitted is kept before what was refused, in the order in which it was looked at. */
function keepConsidered(considered: readonly Considered[]): readonly Considered[] {
  if (considered.length <= MOST_CONSIDERED) return considered;
  const weight = { chosen: 0, admitted: 1, refused: 2, 'not-offered': 3 } as const;
  const kept = new Set(
    [...considered].sort((a, b) => weight[a.outcome] - weight[b.outcome]).slice(0, MOST_CONSIDERED),
  );
  return considered.filter((c) => kept.has(c));
}

function queueOf(snapshot: Snapshot): Working['queue'] {
  const { queue, ticket } = snapshot.input;
  const kept: { readonly callId: CallId; readonly place: number }[] = [];
  for (let place = 1; place <= queue.length; place++) {
    const callId = queue[place - 1]?.callId;
    if (callId !== undefined && (place <= MOST_QUEUED || callId === ticket?.callId))
      kept.push({ callId, place });
  }
  return kept;
}
