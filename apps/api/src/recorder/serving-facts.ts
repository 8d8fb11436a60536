import { decodeMsPerToken } from '#domain/calls/call-history.js';
import type { CallEventData } from '#domain/events/call-events.js';
import type { HistoryEventData } from '#domain/events/history-events.js';
import type { ServingFigures } from '#domain/history/history.js';
import { median } from '#domain/median.js';
import { memo } from '#domain/memo.js';
import { classKey, placementClassOf } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import type { Spool } from '#events/spool.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Fleet } from '../fleet/fleet.js';

/** So many figures of a class make its medians; the first of them are all written. */
const KEPT = 20;
/** After that a figure is news when it is off by this share of the median, or the last is this old. */
const NEWS_SHARE = 0.1;
const NEWS_EVERY_MS = 60_000;
const OLD_MS = 3_600_000;

type Served = HistoryEventData<'ServingMeasured'>;

/**
 * Writes what a call's serving measured into the history of its model, under the class that served it: the medians of a
 * class come from it. A model that serves as it always did writes one an hour; what did not change is not written.
 */
export class ServingFacts {
  readonly #spool: Pick<Spool, 'record'>;
  readonly #fleet: Pick<Fleet, 'resident' | 'history'>;
  readonly #now: () => number;
  readonly #written = new Map<string, { count: number; atMs: number }>();

  constructor(spool: Pick<Spool, 'record'>, fleet: Pick<Fleet, 'resident' | 'history'>, now: () => number) {
    this.#spool = spool;
    this.#fleet = fleet;
    this.#now = now;
  }

  ended(data: CallEventData<'CallFinished'>): void {
    const { callId, residentId, workerId, modelKey, outcome } = data;
    if (outcome !== 'completed' || residentId === undefined || workerId === undefined) return;
    const resident = this.#fleet.resident(residentId)?.resident;
    if (!resident) return;
    const key = keyOf(resident);
    const name = `${workerId}|${modelKey}|${key}`;
    const written = this.#written.get(name) ?? { count: 0, atMs: 0 };
    const history = this.#fleet.history(workerId, modelKey).serving.get(key) ?? [];
    const count = Math.max(written.count, history.length);
    const sinceMs = this.#now() - written.atMs;
    // Nearly every call ends here.
    if (count >= KEPT && sinceMs < NEWS_EVERY_MS) return;
    const measured = servedBy(resident, data);
    if (!measured) return;
    if (count >= KEPT && sinceMs < OLD_MS && !isNews(measured, history)) return;
    this.#written.set(name, { count: count + 1, atMs: this.#now() });
    this.#spool.record(streams.history(workerId, modelKey), {
      id: derivedId('ServingMeasured', callId),
      event: { type: 'ServingMeasured', data: measured },
      cause: { correlationId: callId, causationId: callId },
      at: data.stamps.finishedAt,
    });
  }
}

const keyOf = memo((resident: Resident): string =>
  classKey(placementClassOf(resident.artifact, resident.contract)),
);

/** A figure that is off from those that are known. */
const isNews = (served: Served, known: readonly ServingFigures[]): boolean =>
  isOff(
    served.decodeMsPerToken,
    known.flatMap((k) => k.decodeMsPerToken ?? []),
  ) ||
  isOff(
    served.promptMsPerToken,
    known.flatMap((k) => k.promptMsPerToken ?? []),
  );

function isOff(figure: number | undefined, known: readonly number[]): boolean {
  const middle = median(known);
  return figure !== undefined && middle !== undefined && Math.abs(figure - middle) > NEWS_SHARE * middle;
}

/** Undefined where the engine counted nothing. The cache of engines that allocate it at once reads the same at any count. */
function servedBy(
  resident: Resident,
  { callId, tokens, timings }: CallEventData<'CallFinished'>,
): Served | undefined {
  if (tokens.prompt === undefined) return undefined;
  const kvBytes = resident.measured?.byDevice.reduce((sum, d) => sum + d.kvBytes, 0);
  const read = tokens.prompt - (tokens.cached ?? 0);
  const decode = decodeMsPerToken(tokens.output, timings.decodeMs);
  return {
    callId,
    class: placementClassOf(resident.artifact, resident.contract),
    tokensHeld: tokens.prompt + (tokens.output ?? 0),
    ...(kvBytes === undefined || kvBytes === 0 ? {} : { kvBytes }),
    ...(timings.promptMs === undefined || read <= 0 ? {} : { promptMsPerToken: timings.promptMs / read }),
    ...(decode === undefined ? {} : { decodeMsPerToken: decode }),
  };
}
