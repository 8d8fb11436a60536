import type { Artifact } from '#domain/events/catalog-events.js';
import type { DeviceId, ResidentId } from '#domain/ids.js';
import type { Resident } from '#domain/worker/state.js';
import { approvedArtifacts } from './ask.js';
import { type BytesByDevice, type Charge, chargesOf, residentsOfModel } from './charges.js';
import { callTokens, p99TokensHeld } from './context.js';
import type { PlacementInput } from './contract.js';
import { type CoreClaim, type Cores, coresOf } from './cores.js';
import { EvictionField } from './eviction.js';
import { type Rates, ratesOf } from './predict.js';
import { type ProcessFigures, processFiguresOf } from './process-figures.js';
import { mostRoomFirst, type Room, roomsOf } from './room.js';
import { type BlockingResidents, standingOf } from './standing.js';

/** What every candidate of one decision is held against; folded once. */
export interface Snapshot {
  readonly input: PlacementInput;
  /** Best first; the place is a plan's q. */
  readonly approved: readonly Artifact[];
  /** Most room first. */
  readonly accelerators: readonly DeviceId[];
  readonly charges: ReadonlyMap<ResidentId, Charge>;
  readonly rooms: ReadonlyMap<DeviceId, Room>;
  readonly roomList: readonly Room[];
  /** Residents of the asked model that stay: replaced by the new one, so that their bytes are its credit. */
  readonly own: readonly Resident[];
  readonly credit: BytesByDevice;
  readonly idle: EvictionField;
  /** Those and the residents that only an overdue ticket may have drained. */
  readonly withBusy: EvictionField;
  readonly blocking: BlockingResidents;
  readonly cores: Cores;
  readonly process: ProcessFigures;
  readonly rates: Rates;
  readonly callTokens: number;
  readonly p99Tokens?: number;
  /** Contexts to try, best first; worked out as they are asked for. */
  readonly contexts: ContextsOf[];
  /** Claims of cores, by kind of plan; worked out as they are asked for. */
  readonly claims: CoreClaim[];
}

/** Artifacts that are trained for as much, and replace as much, have the same contexts. */
export interface ContextsOf {
  readonly trainedTokens: number;
  readonly replacedTokens: number;
  readonly contexts: readonly number[];
}

export function snapshotOf(input: PlacementInput): Snapshot {
  const { worker, model } = input;
  const charges = chargesOf(worker);
  const roomList = roomsOf(worker);
  const rooms = new Map(roomList.map((room) => [room.deviceId, room]));
  const own = residentsOfModel(worker, model.modelKey);
  const credit = new Map<DeviceId, number>();
  for (const resident of own) {
    for (const [deviceId, bytes] of charges.get(resident.residentId)?.bytes ?? [])
      credit.set(deviceId, (credit.get(deviceId) ?? 0) + bytes);
  }
  const { candidates, busy, blocking } = standingOf(input, charges, rooms);
  const idle = new EvictionField(candidates);
  const calls = input.calls.get(model.modelKey);
  const p99 = calls && p99TokensHeld(calls.finished);
  return {
    input,
    approved: approvedArtifacts(model.artifacts, input.settings, input.ask),
    accelerators: mostRoomFirst(worker),
    charges,
    rooms,
    roomList,
    own,
    credit,
    idle,
    withBusy: busy.length === 0 ? idle : new EvictionField([...candidates, ...busy]),
    blocking,
    cores: coresOf(worker, input.activity),
    process: processFiguresOf(input.otherHistories, input.history),
    rates: ratesOf(calls),
    callTokens: callTokens(input.ticket),
    ...(p99 === undefined ? {} : { p99Tokens: p99 }),
    contexts: [],
    claims: [],
  };
}
