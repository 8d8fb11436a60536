import type { ModelEvent } from '#domain/events/model-events.js';
import type { WorkerEvent } from '#domain/events/worker-events.js';
import type { DecisionId, ModelKey, WorkerId } from '#domain/ids.js';
import type { EventLog, NewEvent } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Fleet } from '../fleet/fleet.js';

/** Whoever holds a claim begins no try of its decision later than this after it. */
export const CLAIM_HOLDS_MS = 5000;
/** A claim whose decision was not seen for so long is void: the last try of it has ended by then. */
const VOID_AFTER_MS = 10_000;
/** By the writers' clocks, which are not ours: a claim of this age was void before we saw it. */
const OLD_MS = 120_000;
const LOOK_AGAIN_MS = 200;
/** A worker writes fewer while a claim is young: its decision is among them, if it was written. */
const RECENT_EVENTS = 256;
const APPEND_DEADLINE_MS = 4000;

export interface Claim {
  readonly modelKey: ModelKey;
  readonly workerId: WorkerId;
  readonly decisionId: DecisionId;
  /** How many residents it was decided beside; none for a model that is cold. */
  readonly there?: number;
}

export type Claimed =
  /** The decision may be appended, as long as the claim holds. */
  | { readonly kind: 'taken' }
  /** Somebody else loads it: what is known now has to be looked at again. */
  | { readonly kind: 'another' }
  | { readonly kind: 'unavailable'; readonly message: string };

export interface LoadClaimsOptions {
  readonly fleet: Pick<Fleet, 'residentsOf' | 'catchUpWorker' | 'worker'>;
  readonly log: Pick<EventLog, 'append' | 'readBackwards'>;
  readonly now: () => number;
}

/**
 * A model that is cold everywhere is loaded once, and so is its second resident. The expected revision of a worker's
 * stream guards the room of that worker alone: two apis that decide at the same moment for two workers would both load.
 * So each claims the load first, in the stream of the model, with the revision that it read there.
 */
export class LoadClaims {
  readonly #o: LoadClaimsOptions;
  /** When a claim of another was first seen here, by decision. */
  readonly #seenAt = new Map<ModelKey, { readonly decisionId: DecisionId; readonly atMs: number }>();
  /** The newest claim from here whose decision was not written and never will be. */
  readonly #givenUp = new Map<ModelKey, DecisionId>();
  readonly #waits = new Map<
    ModelKey,
    { readonly untilMs: number; readonly why: string; readonly there: number }
  >();

  constructor(options: LoadClaimsOptions) {
    this.#o = options;
  }

  /** How many are there, or come. What a lost worker runs is unknown, and is not counted on. */
  residents(key: ModelKey): number {
    const { fleet } = this.#o;
    return fleet
      .residentsOf(key)
      .filter(({ workerId, resident }) => !resident.leaving && fleet.worker(workerId)?.lost !== true).length;
  }

  /** What a load beside so many residents is held back by: a claim of another whose decision is not there yet. */
  of(key: ModelKey, there = 0): { readonly why: string; readonly inMs: number } | undefined {
    const wait = this.#waits.get(key);
    const inMs = (wait?.untilMs ?? 0) - this.#o.now();
    if (wait && inMs > 0 && wait.there === there && this.residents(key) <= there)
      return { why: wait.why, inMs };
    this.#waits.delete(key);
    return undefined;
  }

  async take(claim: Claim, correlationId: string): Promise<Claimed> {
    const { log, fleet } = this.#o;
    const { modelKey: key, workerId, decisionId, there = 0 } = claim;
    const stream = streams.model(key);
    const [last] = await log.readBackwards<ModelEvent>(stream, 1);
    if (last && last.event.data.decisionId !== decisionId) {
      // Its decision may stand in a stream that this fold is behind of.
      await fleet.catchUpWorker(last.event.data.workerId);
      if (this.residents(key) > there) return { kind: 'another' };
      if (!(await this.#isOver(key, last.event.data, last.metadata.at)))
        return this.#waitFor(key, there, last.event.data.workerId);
    }
    const event: NewEvent<ModelEvent> = {
      id: derivedId('LoadClaimed', decisionId),
      event: { type: 'LoadClaimed', data: { modelKey: key, workerId, decisionId } },
      cause: { correlationId, causationId: correlationId },
    };
    const expected = last ? last.revision : 'no-stream';
    const outcome = await log.append(stream, [event], expected, { deadlineMs: APPEND_DEADLINE_MS });
    if (outcome.ok) {
      this.#seenAt.delete(key);
      this.#waits.delete(key);
      this.#givenUp.delete(key);
      return { kind: 'taken' };
    }
    if (outcome.error.kind === 'conflict') return this.#waitFor(key, there);
    return { kind: 'unavailable', message: outcome.error.message };
  }

  /** The plan that it was taken for does not stand any more, and is not written: the next decision need not wait for it. */
  giveUp({ modelKey, decisionId }: Claim): void {
    this.#givenUp.set(modelKey, decisionId);
  }

  /** Its decision was written, and what came of it is gone; or it never came. */
  async #isOver(key: ModelKey, { workerId, decisionId }: Claim, at: string): Promise<boolean> {
    if (this.#givenUp.get(key) === decisionId) return true;
    const nowMs = this.#o.now();
    if (nowMs - Date.parse(at) > OLD_MS) return true;
    const recent = await this.#o.log.readBackwards<WorkerEvent>(streams.worker(workerId), RECENT_EVENTS);
    if (recent.some(({ event }) => event.type === 'PlacementDecided' && event.data.decisionId === decisionId))
      return true;
    // Counted from when it was first seen here, since clocks of machines differ.
    const seen = this.#seenAt.get(key);
    if (seen?.decisionId === decisionId) return nowMs - seen.atMs > VOID_AFTER_MS;
    this.#seenAt.set(key, { decisionId, atMs: nowMs });
    return false;
  }

  #waitFor(key: ModelKey, there: number, workerId?: WorkerId): Claimed {
    const where =
      workerId === undefined ? 'another worker' : (this.#o.fleet.worker(workerId)?.name ?? workerId);
    const why = `its load on ${where} has been claimed by another api at the same moment`;
    this.#waits.set(key, { untilMs: this.#o.now() + LOOK_AGAIN_MS, why, there });
    return { kind: 'another' };
  }
}
