import type { PairHistory } from '#domain/history/history.js';
import { type DeviceId, RAM, type ResidentId } from '#domain/ids.js';
import { type PlacementClass, placementClassOf } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import type { BytesByDevice, Charge } from './charges.js';
import type { PlacementInput, ResidentActivity, ResidentPolicy } from './contract.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { agedCalls, expectedLoss, loadSeconds, meanWaitSeconds, ONE_OF_TWO_SHARE, soonness } from './loss.js';
import { memo } from './memo.js';
import type { Room } from './room.js';
import { defaultSettings } from './setting-levels.js';
import { ReloadsByPlace } from './warm-files.js';

/** A resident as this decision finds it. */
export interface Seen {
  readonly resident: Resident;
  readonly facts: ResidentFacts;
  readonly activity: ResidentActivity | undefined;
  readonly policy: ResidentPolicy;
  readonly band: number;
  readonly idleSeconds: number;
}

export function look(input: PlacementInput, resident: Resident): Seen {
  const facts = factsOf(resident);
  const activity = input.activity.get(resident.residentId);
  const policy = input.residentPolicies?.get(resident.modelKey) ?? defaultSettings;
  // What the call that had it loaded asked for, else what the settings say of its model now.
  const band = resident.priority ?? policy.priority;
  const sinceMs = Math.max(activity?.lastCallEndedAtMs ?? 0, facts.readyAtMs ?? facts.decidedAtMs);
  const idleSeconds = Math.max(0, (input.nowMs - sinceMs) / 1000);
  return { resident, facts, activity, policy, band, idleSeconds };
}

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
export class Candidates {
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

  of({ resident, facts, activity, band, idleSeconds }: Seen): EvictionCandidate {
    const { modelKey, residentId } = resident;
    const { nowMs, settings, otherHistories, soonnessOf } = this.#input;
    const charge = this.#charges.get(residentId);
    const unknownSize = charge !== undefined && charge.unknownOn.size > 0;
    const calls = this.#input.calls.get(modelKey);
    const history = otherHistories.get(modelKey);
    const soon = soonnessOf ? soonnessOf(modelKey, nowMs) : soonness(calls, nowMs);
    const reloadSeconds =
      (history && this.#reloads.secondsOf(history, facts.klass)) ?? facts.loadSeconds(history);
    return {
      residentId,
      modelKey,
      band,
      frees: unknownSize ? this.#unknownFrees(charge) : (charge?.bytes ?? NO_BYTES),
      lossSeconds:
        (activity?.alsoElsewhere ? ONE_OF_TWO_SHARE : 1) *
        expectedLoss(soon, reloadSeconds, meanWaitSeconds(calls)),
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
