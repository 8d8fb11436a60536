import type { DecisionCause } from '#domain/events/worker-events.js';
import type { DeviceId, ModelKey, ResidentId } from '#domain/ids.js';
import { Candidates, look, type Seen } from './candidates.js';
import { type BytesByDevice, type Charge, residentsById, residentsOfModel } from './charges.js';
import type { PlacementInput } from './contract.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { isOverdue } from './queue.js';
import type { Room } from './room.js';

/** A resident that cannot be a victim now, and why. */
export interface Blocking {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly reason: string;
  readonly holds: BytesByDevice;
  /** As a victim, were it to go; worked out when it is asked for. */
  readonly candidate: EvictionCandidate;
  /** When it is expected to become a candidate. */
  readonly freeInSeconds?: number | undefined;
}

export interface ComingFree extends Blocking {
  readonly freeInSeconds: number;
}

export class BlockingResidents {
  readonly all: readonly Blocking[];
  #coming: readonly ComingFree[] | undefined;

  constructor(all: readonly Blocking[]) {
    this.all = all;
  }

  /** Those of whom it is known when they become candidates, the soonest first. */
  get coming(): readonly ComingFree[] {
    return (this.#coming ??= this.all.filter(isComing).sort((a, b) => a.freeInSeconds - b.freeInSeconds));
  }
}

const isComing = (blocking: Blocking): blocking is ComingFree => blocking.freeInSeconds !== undefined;

/** Where each resident of other models stands for a decision: who may go, and who may not. */
export interface Standing {
  readonly candidates: readonly EvictionCandidate[];
  /** Whom only an overdue ticket may have drained: after every idle one. */
  readonly busy: readonly EvictionCandidate[];
  readonly blocking: BlockingResidents;
}

export function standingOf(
  input: PlacementInput,
  charges: ReadonlyMap<ResidentId, Charge>,
  rooms: ReadonlyMap<DeviceId, Room>,
): Standing {
  const candidates: EvictionCandidate[] = [];
  const busy: EvictionCandidate[] = [];
  const blocking: Blocking[] = [];
  const overdue = input.ticket !== undefined && isOverdue(input.ticket, input.nowMs, input.settings);
  const wantedAhead = modelsWantedAhead(input);
  const make = new Candidates(input, charges, rooms);
  for (const resident of residentsById(input.worker)) {
    if (resident.modelKey === input.model.modelKey && !resident.leaving) continue;
    const seen = look(input, resident);
    const why = whyNotVictim(input, seen, wantedAhead);
    if (why === undefined) {
      candidates.push(make.of(seen));
      continue;
    }
    const blocked = new BlockingResident(seen, why, make);
    blocking.push(blocked);
    if (why.busy && overdue) busy.push({ ...blocked.candidate, band: blocked.candidate.band + BUSY_BAND });
  }
  return { candidates, busy, blocking: new BlockingResidents(blocking) };
}

/** Busy residents come after every idle one, whatever their band. */
const BUSY_BAND = 1e6;

/** Resident models that tickets ahead of the asker need next; all of the queue is ahead of a decision without a ticket. */
function modelsWantedAhead({ worker, queue, ticket }: PlacementInput): ReadonlySet<ModelKey> {
  const wanted = new Set<ModelKey>();
  for (const { callId, modelKey } of queue) {
    if (callId === ticket?.callId) break;
    if (residentsOfModel(worker, modelKey).length > 0) wanted.add(modelKey);
  }
  return wanted;
}

/** What nobody asked for takes only room that is free. */
const UNASKED: ReadonlySet<DecisionCause['kind']> = new Set(['preload', 'grow', 'probe']);

interface WhyNot {
  readonly text: string;
  /** Only its calls keep it: an overdue ticket may have it drained. */
  readonly busy: boolean;
}

const no = (text: string): WhyNot => ({ text, busy: false });

function whyNotVictim(
  input: PlacementInput,
  { resident, facts, activity, policy, band: ownBand, idleSeconds }: Seen,
  wantedAhead: ReadonlySet<ModelKey>,
): WhyNot | undefined {
  if (resident.leaving) return no(`is leaving already (${resident.leaving.reason})`);
  if (resident.phase === 'loading') return no('is loading');
  if (resident.phase === 'planned') return no('is about to load');
  if (UNASKED.has(input.cause.kind)) return no('is not evicted for what no call asked for');
  if (input.worker.pins.has(resident.modelKey) || policy.pinned) return no('is pinned');
  const band = input.settings.priority;
  if (ownBand > band) return no(`is in the higher band ${ownBand} (the asker's is ${band})`);
  const higher = band > ownBand;
  const residentSeconds = secondsSince(input.nowMs, facts.readyAtMs);
  if (!higher && residentSeconds < policy.minResidencySeconds)
    return no(`is resident for ${Math.floor(residentSeconds)} s of at least ${policy.minResidencySeconds} s`);
  if (wantedAhead.has(resident.modelKey)) return no('a call ahead in the queue needs it next');
  const calls = activity?.callsInFlight ?? 0;
  if (calls > 0) return { text: calls === 1 ? 'has a call on it' : `has ${calls} calls on it`, busy: true };
  if (!higher && idleSeconds < policy.idleEvictSeconds)
    return no(`is idle for ${Math.floor(idleSeconds)} s of at least ${policy.idleEvictSeconds} s`);
  return undefined;
}

const secondsSince = (nowMs: number, atMs: number | undefined): number =>
  atMs === undefined ? 0 : Math.max(0, (nowMs - atMs) / 1000);

class BlockingResident implements Blocking {
  readonly reason: string;
  readonly freeInSeconds: number | undefined;
  readonly #seen: Seen;
  readonly #make: Candidates;
  #candidate: EvictionCandidate | undefined;

  constructor(seen: Seen, why: WhyNot, make: Candidates) {
    this.reason = why.text;
    this.freeInSeconds = why.busy ? seen.activity?.freeInSeconds : undefined;
    this.#seen = seen;
    this.#make = make;
  }

  get residentId(): ResidentId {
    return this.#seen.resident.residentId;
  }

  get modelKey(): ModelKey {
    return this.#seen.resident.modelKey;
  }

  get holds(): BytesByDevice {
    return this.#make.holds(this.#seen.resident);
  }

  get candidate(): EvictionCandidate {
    return (this.#candidate ??= this.#make.of(this.#seen));
  }
}
