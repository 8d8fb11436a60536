import { decodeMsPerToken } from '#domain/calls/call-history.js';
import type { CallEventData } from '#domain/events/call-events.js';
import type { HistoryEventData } from '#domain/events/history-events.js';
import type { PairHistory } from '#domain/history/history.js';
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
    const measured = resident && servedBy(resident, data);
    if (!measured) return;
    const key = keyOf(resident);
    if (
      !this.#isNews(`${workerId}|${modelKey}|${key}`, key, this.#fleet.history(workerId, modelKey), measured)
    )
      return;
    this.#spool.record(streams.history(workerId, modelKey), {
      id: derivedId('ServingMeasured', callId),
      event: { type: 'ServingMeasured', data: measured },
      cause: { correlationId: callId, causationId: callId },
      at: data.stamps.finishedAt,
    });
  }

  #isNews(name: string, key: string, history: PairHistory, served: Served): boolean {
    const known = history.serving.get(key) ?? [];
    const written = this.#written.get(name) ?? { count: 0, atMs: 0 };
    const sinceMs = this.#now() - written.atMs;
    const count = Math.max(written.count, known.length);
    const isNews =
      count < KEPT ||
      sinceMs >= OLD_MS ||
      (sinceMs >= NEWS_EVERY_MS &&
        (isOff(
          served.decodeMsPerToken,
          known.flatMap((k) => k.decodeMsPerToken ?? []),
        ) ||
          isOff(
            served.promptMsPerToken,
            known.flatMap((k) => k.promptMsPerToken ?? []),
          )));
    if (isNews) this.#written.set(name, { count: count + 1, atMs: this.#now() });
    return isNews;
  }
}

const keyOf = memo((resident: Resident): string =>
  classKey(placementClassOf(resident.artifact, resident.contract)),
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
