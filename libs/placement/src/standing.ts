import type { DecisionCause } from '#domain/events/worker-events.js';
import type { PairHistory } from '#domain/history/history.js';
import { type DeviceId, type ModelKey, RAM, type ResidentId } from '#domain/ids.js';
import { type PlacementClass, placementClassOf } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import { type BytesByDevice, type Charge, residentsById, residentsOfModel } from './charges.js';
import type { PlacementInput, ResidentActivity, ResidentPolicy } from './contract.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { agedCalls, expectedLoss, loadSeconds, meanWaitSeconds, soonness } from './loss.js';
import { memo } from './memo.js';
import { isOverdue } from './queue.js';
import type { Room } from './room.js';
import { defaultSettings } from './setting-levels.js';
import { ReloadsByPlace } from './warm-files.js';

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

/** A resident as this decision finds it. */
interface Seen {
  readonly resident: Resident;
  readonly facts: ResidentFacts;
  readonly activity: ResidentActivity | undefined;
  readonly policy: ResidentPolicy;
  readonly band: number;
  readonly idleSeconds: number;
}

function look(input: PlacementInput, resident: Resident): Seen {
  const facts = factsOf(resident);
  const activity = input.activity.get(resident.residentId);
  const policy = input.residentPolicies?.get(resident.modelKey) ?? defaultSettings;
  // What the call that had it loaded asked for, else what the settings say of its model now.
  const band = resident.priority ?? policy.priority;
  const sinceMs = Math.max(activity?.lastCallEndedAtMs ?? 0, facts.readyAtMs ?? facts.decidedAtMs);
  const idleSeconds = Math.max(0, (input.nowMs - sinceMs) / 1000);
  return { resident, facts, activity, policy, band, idleSeconds };
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

/** What a resident says as long as it does not change. */
class ResidentFacts {
  readonly decidedAtMs: number;
  readonly readyAtMs: number | undefined;
  readonly klass: PlacementClass;
  readonly #weightsBytes: number;
  #last: { readonly history: PairHistory | undefined; readonly seconds: number } | undefined;

  constructor(resident: Resident) {
    this.decidedAtMs = Date.parse(resident.decidedAt);
    this.readyAtMs = resident.readyAt === undefined ? undefined : Date.parse(resident.readyAt);
    this.klass = placementClassOf(resident.artifact, resident.contract);
    this.#weightsBytes = resident.need.reduce(
      (sum, t) => sum + (t.term === 'weights' ? (t.bytes ?? 0) : 0),
      0,
    );
  }

  /** Of loading it anew, by a history; kept for the last one. */
  loadSeconds(history: PairHistory | undefined): number {
    if (this.#last?.history !== history || !this.#last)
      this.#last = { history, seconds: loadSeconds(history, this.klass, this.#weightsBytes).seconds };
    return this.#last.seconds;
  }
}

const factsOf = memo((resident: Resident) => new ResidentFacts(resident));

const NO_BYTES: BytesByDevice = new Map();

/** Makes the candidates of one decision. */
class Candidates {
  readonly #input: PlacementInput;
  readonly #charges: ReadonlyMap<ResidentId, Charge>;
  readonly #rooms: ReadonlyMap<DeviceId, Room>;
  readonly #reloads: ReloadsByPlace;

  constructor(
    input: PlacementInput,
    charges: ReadonlyMap<ResidentId, Charge>,
    rooms: ReadonlyMap<DeviceId, Room>,
  ) {
    this.#input = input;
    this.#charges = charges;
    this.#rooms = rooms;
    this.#reloads = new ReloadsByPlace(input.otherHistories, rooms.get(RAM)?.roomBytes);
  }

  holds({ residentId }: Resident): BytesByDevice {
    return this.#charges.get(residentId)?.bytes ?? NO_BYTES;
  }

  of({ resident, facts, band, idleSeconds }: Seen): EvictionCandidate {
    const { modelKey, residentId } = resident;
    const { nowMs, settings, otherHistories } = this.#input;
    const charge = this.#charges.get(residentId);
    const unknownSize = charge !== undefined && charge.unknownOn.size > 0;
    const calls = this.#input.calls.get(modelKey);
    const history = otherHistories.get(modelKey);
    const reloadSeconds =
      (history && this.#reloads.secondsOf(history, facts.klass)) ?? facts.loadSeconds(history);
    return {
      residentId,
      modelKey,
      band,
      frees: unknownSize ? this.#unknownFrees(charge) : (charge?.bytes ?? NO_BYTES),
      lossSeconds: expectedLoss(soonness(calls, nowMs), reloadSeconds, meanWaitSeconds(calls)),
      reloadSeconds,
      idleSeconds,
      calls: calls?.calls ?? 0,
      agedCalls: settings.evictionOrder === 'gdsf' ? agedCalls(calls, nowMs) : 0,
      unknownSize,
    };
  }

  /** The only resident of unknown size on a device gives back all that is left there; one of several gives nothing for certain. */
  #unknownFrees(charge: Charge): BytesByDevice {
    const frees = new Map(charge.bytes);
    for (const deviceId of charge.unknownOn) {
      const alone = [...this.#charges.values()].filter((c) => c.unknownOn.has(deviceId)).length === 1;
      const room = this.#rooms.get(deviceId);
      const left =
        (room?.limitBytes ?? 0) -
        (room?.residentsBytes ?? 0) -
        (room?.encroachmentBytes ?? 0) -
        (room?.reservedBytes ?? 0);
      frees.set(deviceId, alone ? (charge.bytes.get(deviceId) ?? 0) + Math.max(0, left) : 0);
    }
    return frees;
  }
}

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
