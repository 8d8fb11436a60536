import type { DecisionCause } from '#domain/events/worker-events.js';
import type { Artifact } from '#domain/events/catalog-events.js';
import { type DeviceId, type ModelKey, RAM, type ResidentId } from '#domain/ids.js';
import { type PlacementClass, placementClassOf } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import { approvedArtifacts } from './ask.js';
import { type BytesByDevice, type Charge, chargesOf, residentsById, residentsOfModel } from './charges.js';
import { callTokens, p99TokensHeld } from './context.js';
import type { PlacementInput, ResidentPolicy } from './contract.js';
import { busyCpusOf, type CoreClaim, type Cores, coresOf } from './cores.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { EvictionField } from './eviction.js';
import { agedCalls, expectedLoss, loadSeconds, meanWaitSeconds, soonness } from './loss.js';
import { memo } from './memo.js';
import { type Rates, ratesOf } from './predict.js';
import { type ProcessFigures, processFiguresOf } from './process-figures.js';
import { isOverdue } from './queue.js';
import { mostRoomFirst, type Room, roomsOf } from './room.js';
import { defaultSettings } from './setting-levels.js';
import { ReloadsByPlace } from './warm-files.js';

/** A resident that cannot be a victim now, and why. */
export interface Blocking {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly reason: string;
  readonly holds: BytesByDevice;
  /** What is lost when it goes. */
  readonly lossSeconds: () => number;
  /** When it is expected to become a candidate. */
  readonly freeInSeconds?: number;
}

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
  readonly blocking: readonly Blocking[];
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
  const { candidates, busy, blocking } = sortResidents(input, residentsById(worker), charges, rooms);
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
    cores: coresOf(worker, input.activity, busyCpusOf(worker)),
    process: processFiguresOf(input.otherHistories, input.history),
    rates: ratesOf(calls),
    callTokens: callTokens(input.ticket),
    ...(p99 === undefined ? {} : { p99Tokens: p99 }),
    contexts: [],
    claims: [],
  };
}

const NO_BYTES: BytesByDevice = new Map();

interface Sides {
  readonly candidates: readonly EvictionCandidate[];
  readonly busy: readonly EvictionCandidate[];
  readonly blocking: readonly Blocking[];
}

function sortResidents(
  input: PlacementInput,
  residents: readonly Resident[],
  charges: ReadonlyMap<ResidentId, Charge>,
  rooms: ReadonlyMap<DeviceId, Room>,
): Sides {
  const candidates: EvictionCandidate[] = [];
  const busy: EvictionCandidate[] = [];
  const blocking: Blocking[] = [];
  const overdue = input.ticket !== undefined && isOverdue(input.ticket, input.nowMs, input.settings);
  const wantedAhead = modelsWantedAhead(input);
  const reloads = new ReloadsByPlace(input.otherHistories, rooms.get(RAM)?.roomBytes);
  for (const resident of residents) {
    if (resident.modelKey === input.model.modelKey && !resident.leaving) continue;
    const reason = whyNotVictim(input, resident, wantedAhead);
    if (reason === undefined) {
      candidates.push(candidateOf(input, resident, charges, rooms, reloads));
      continue;
    }
    const activity = input.activity.get(resident.residentId);
    const { residentId, modelKey } = resident;
    const holds = charges.get(residentId)?.bytes ?? NO_BYTES;
    const freeInSeconds = reason.busy ? activity?.freeInSeconds : undefined;
    blocking.push({
      residentId,
      modelKey,
      reason: reason.text,
      holds,
      lossSeconds: () => candidateOf(input, resident, charges, rooms, reloads).lossSeconds,
      ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
    });
    if (reason.busy && overdue) {
      const candidate = candidateOf(input, resident, charges, rooms, reloads);
      busy.push({ ...candidate, band: candidate.band + BUSY_BAND });
    }
  }
  return { candidates, busy, blocking };
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

export const policyOf = (input: PlacementInput, modelKey: ModelKey): ResidentPolicy =>
  input.residentPolicies?.get(modelKey) ?? defaultSettings;

/** What nobody asked for takes only room that is free. */
const UNASKED: ReadonlySet<DecisionCause['kind']> = new Set(['preload', 'grow', 'probe']);

/** What the call that had it loaded asked for, else what the settings say of its model now. */
export const bandOf = (input: PlacementInput, resident: Resident): number =>
  resident.priority ?? policyOf(input, resident.modelKey).priority;

interface WhyNot {
  readonly text: string;
  /** Only its calls keep it: an overdue ticket may have it drained. */
  readonly busy: boolean;
}

function whyNotVictim(
  input: PlacementInput,
  resident: Resident,
  wantedAhead: ReadonlySet<ModelKey>,
): WhyNot | undefined {
  const no = (text: string): WhyNot => ({ text, busy: false });
  if (resident.leaving) return no(`is leaving already (${resident.leaving.reason})`);
  if (resident.phase === 'loading') return no('is loading');
  if (resident.phase === 'planned') return no('is about to load');
  if (UNASKED.has(input.cause.kind)) return no('is not evicted for what no call asked for');
  const policy = policyOf(input, resident.modelKey);
  const ownBand = bandOf(input, resident);
  if (input.worker.pins.has(resident.modelKey) || policy.pinned) return no('is pinned');
  const band = input.settings.priority;
  if (ownBand > band) return no(`is in the higher band ${ownBand} (the asker's is ${band})`);
  const higher = band > ownBand;
  const residentSeconds = secondsSince(input.nowMs, factsOf(resident).readyAtMs);
  if (!higher && residentSeconds < policy.minResidencySeconds)
    return no(`is resident for ${Math.floor(residentSeconds)} s of at least ${policy.minResidencySeconds} s`);
  if (wantedAhead.has(resident.modelKey)) return no('a call ahead in the queue needs it next');
  const calls = input.activity.get(resident.residentId)?.callsInFlight ?? 0;
  if (calls > 0) return { text: calls === 1 ? 'has a call on it' : `has ${calls} calls on it`, busy: true };
  const idle = idleSecondsOf(input, resident);
  if (!higher && idle < policy.idleEvictSeconds)
    return no(`is idle for ${Math.floor(idle)} s of at least ${policy.idleEvictSeconds} s`);
  return undefined;
}

const secondsSince = (nowMs: number, atMs: number | undefined): number =>
  atMs === undefined ? 0 : Math.max(0, (nowMs - atMs) / 1000);

function idleSecondsOf(input: PlacementInput, resident: Resident): number {
  const ended = input.activity.get(resident.residentId)?.lastCallEndedAtMs ?? 0;
  const { readyAtMs, decidedAtMs } = factsOf(resident);
  return Math.max(0, (input.nowMs - Math.max(ended, readyAtMs ?? decidedAtMs)) / 1000);
}

interface ResidentFacts {
  readonly decidedAtMs: number;
  readonly readyAtMs: number | undefined;
  readonly weightsBytes: number;
  readonly klass: PlacementClass;
}

const factsOf = memo((resident: Resident): ResidentFacts => ({
  decidedAtMs: Date.parse(resident.decidedAt),
  readyAtMs: resident.readyAt === undefined ? undefined : Date.parse(resident.readyAt),
  weightsBytes: resident.need.reduce((sum, t) => sum + (t.term === 'weights' ? (t.bytes ?? 0) : 0), 0),
  klass: placementClassOf(resident.artifact, resident.contract),
}));

function candidateOf(
  input: PlacementInput,
  resident: Resident,
  charges: ReadonlyMap<ResidentId, Charge>,
  rooms: ReadonlyMap<DeviceId, Room>,
  reloads: ReloadsByPlace,
): EvictionCandidate {
  const { modelKey, residentId } = resident;
  const charge = charges.get(residentId);
  const bytes = charge?.bytes ?? NO_BYTES;
  const calls = input.calls.get(modelKey);
  const { weightsBytes, klass } = factsOf(resident);
  const history = input.otherHistories.get(modelKey);
  const reloadSeconds =
    (history && reloads.secondsOf(history, klass)) ?? loadSeconds(history, klass, weightsBytes).seconds;
  return {
    residentId,
    modelKey,
    band: bandOf(input, resident),
    frees: charge && charge.unknownOn.size > 0 ? unknownFrees(charge, charges, rooms) : bytes,
    lossSeconds: expectedLoss(soonness(calls, input.nowMs), reloadSeconds, meanWaitSeconds(calls)),
    reloadSeconds,
    idleSeconds: idleSecondsOf(input, resident),
    calls: calls?.calls ?? 0,
    agedCalls: input.settings.evictionOrder === 'gdsf' ? agedCalls(calls, input.nowMs) : 0,
    unknownSize: (charge?.unknownOn.size ?? 0) > 0,
  };
}

/** The only resident of unknown size on a device gives back all that is left there; one of several gives nothing for certain. */
function unknownFrees(
  charge: Charge,
  charges: ReadonlyMap<ResidentId, Charge>,
  rooms: ReadonlyMap<DeviceId, Room>,
): BytesByDevice {
  const frees = new Map(charge.bytes);
  for (const deviceId of charge.unknownOn) {
    const alone = [...charges.values()].filter((c) => c.unknownOn.has(deviceId)).length === 1;
    const room = rooms.get(deviceId);
    const left =
      (room?.limitBytes ?? 0) -
      (room?.residentsBytes ?? 0) -
      (room?.encroachmentBytes ?? 0) -
      (room?.reservedBytes ?? 0);
    frees.set(deviceId, alone ? (charge.bytes.get(deviceId) ?? 0) + Math.max(0, left) : 0);
  }
  return frees;
}
