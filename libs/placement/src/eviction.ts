import type { DeviceId } from '#domain/ids.js';
import type { EvictionOrder } from '#domain/placement-terms.js';
import type { BytesByDevice } from './charges.js';
import type { EvictionCandidate, EvictionSet } from './eviction-candidate.js';
import { cheapestSet } from './eviction-exact.js';
import { cheapestOnOne, FREED_SHARE, ties, worthOfByte } from './eviction-single.js';

/** Up to so many candidates the best set is searched for exactly. */
export const EXACT_CANDIDATES = 20;
/** Search nodes of one plan, and of all plans of a decision together: each takes about 50 ns. */
const NODES_PER_PLAN = 4000;
const NODES_PER_DECISION = 12_000;

interface OnDevice {
  readonly list: readonly EvictionCandidate[];
  /** What all of them free together. */
  readonly bytes: number;
  readonly anyUnknown: boolean;
  readonly oneBand: boolean;
  /** What a byte there is worth to who comes next, in seconds of loss. */
  readonly worth: number;
}

const NOBODY: OnDevice = { list: [], bytes: 0, anyUnknown: false, oneBand: true, worth: 0 };

/** The candidates of one decision, by device, so that each of its plans looks at those alone that could help it. */
export class EvictionField {
  readonly candidates: readonly EvictionCandidate[];
  nodesLeft = NODES_PER_DECISION;
  readonly #byDevice = new Map<DeviceId, OnDevice>();

  constructor(candidates: readonly EvictionCandidate[]) {
    this.candidates = candidates;
    const lists = new Map<DeviceId, EvictionCandidate[]>();
    let candidate: EvictionCandidate;
    // One function for all of them: entries of a map are objects, and this is done for every decision.
    const add = (bytes: number, deviceId: DeviceId): void => {
      if (bytes <= 0) return;
      const list = lists.get(deviceId);
      if (list) list.push(candidate);
      else lists.set(deviceId, [candidate]);
    };
    for (candidate of candidates) candidate.frees.forEach(add);
    for (const [deviceId, list] of lists) {
      let bytes = 0;
      let anyUnknown = false;
      let oneBand = true;
      for (const c of list) {
        bytes += c.frees.get(deviceId) ?? 0;
        anyUnknown ||= c.unknownSize;
        oneBand &&= c.band === list[0]?.band;
      }
      const worth = worthOfByte(deviceId, list);
      this.#byDevice.set(deviceId, { list, bytes, anyUnknown, oneBand, worth });
    }
  }

  on(deviceId: DeviceId): OnDevice {
    return this.#byDevice.get(deviceId) ?? NOBODY;
  }

  /** Those that free something on one of the devices, in their order. */
  helping(devices: readonly DeviceId[]): readonly EvictionCandidate[] {
    const [first] = devices;
    if (first !== undefined && devices.length === 1) return this.on(first).list;
    return this.candidates.filter((c) => devices.some((d) => (c.frees.get(d) ?? 0) > 0));
  }
}

/**
 * The residents to evict so that at least the deficit is freed on each device; undefined when no set does. A lower
 * band is used up before a higher one is touched, a resident of unknown size comes after all others, and no victim is
 * kept that the others make superfluous.
 */
export const evictionSet = (
  deficits: BytesByDevice,
  candidates: readonly EvictionCandidate[],
  order: EvictionOrder,
): EvictionSet | undefined => evictionSetOf(deficits, new EvictionField(candidates), order);

export function evictionSetOf(
  deficits: BytesByDevice,
  field: EvictionField,
  order: EvictionOrder,
): EvictionSet | undefined {
  const open = openOf(deficits);
  if (open.size === 0) return NOBODY_GOES;
  if (open.size === 1 && order === 'loss') {
    for (const [deviceId, bytes] of open) {
      const { list, bytes: most, anyUnknown, oneBand, worth } = field.on(deviceId);
      if (most < bytes) return undefined;
      if (anyUnknown || !oneBand || list.length > EXACT_CANDIDATES) break;
      const limit = Math.min(NODES_PER_PLAN, field.nodesLeft);
      const found = cheapestOnOne(deviceId, bytes, list, limit, worth);
      field.nodesLeft -= found.nodes;
      return found;
    }
  }
  let anyUnknown = false;
  for (const [deviceId, bytes] of open) {
    const there = field.on(deviceId);
    if (there.bytes < bytes) return undefined;
    anyUnknown ||= there.anyUnknown;
  }
  const helping = field.helping([...open.keys()]);
  if (!anyUnknown) return fromBands(open, helping, order, field);
  const known = helping.filter((c) => !c.unknownSize);
  return fromBands(open, known, order, field) ?? fromBands(open, helping, order, field);
}

const NOBODY_GOES: EvictionSet = { victims: [], exact: true };

function openOf(deficits: BytesByDevice): BytesByDevice {
  for (const bytes of deficits.values())
    if (bytes <= 0) return new Map([...deficits].filter(([, deficit]) => deficit > 0));
  return deficits;
}

function fromBands(
  deficits: BytesByDevice,
  candidates: readonly EvictionCandidate[],
  order: EvictionOrder,
  field: EvictionField,
): EvictionSet | undefined {
  const eligible = lowestBands(deficits, candidates);
  if (!eligible) return undefined;
  if (order !== 'loss') {
    const sorted = [...eligible].sort(byOrder(order, deficits));
    return { victims: dropSuperfluous(deficits, takeUntilCovered(deficits, sorted)), exact: false };
  }
  const net = netLosses(eligible, deficits);
  const lossOf = (c: EvictionCandidate): number => net.get(c) ?? c.lossSeconds;
  const cheapFirst = byLossForGain(eligible, deficits, lossOf);
  const greedy = dropSuperfluous(deficits, takeUntilCovered(deficits, cheapFirst));
  if (eligible.length > EXACT_CANDIDATES) return { victims: greedy, exact: false };
  // The sort is stable: highest band first, and within a band as before.
  const highFirst =
    cheapFirst[0]?.band === cheapFirst.at(-1)?.band
      ? cheapFirst
      : [...cheapFirst].sort((a, b) => b.band - a.band);
  const limit = Math.min(NODES_PER_PLAN, field.nodesLeft);
  const { set, exact, nodes } = cheapestSet(deficits, highFirst, greedy, limit, lossOf);
  field.nodesLeft -= nodes;
  return { victims: set === greedy ? greedy : dropSuperfluous(deficits, set), exact };
}

/**
 * What is lost by each when what it frees is counted for it: who comes next finds the bytes that are freed beyond the
 * need, and has to evict less. A byte is worth less than any candidate loses for one, so that nobody goes without need.
 */
function netLosses(
  candidates: readonly EvictionCandidate[],
  deficits: BytesByDevice,
): ReadonlyMap<EvictionCandidate, number> {
  const freed = candidates.map((c) => bytesFreed(c, deficits));
  let least = Infinity;
  candidates.forEach(({ lossSeconds }, i) => {
    const bytes = freed[i] ?? 0;
    if (bytes > 0) least = Math.min(least, lossSeconds / bytes);
  });
  const worth = least === Infinity ? 0 : FREED_SHARE * least;
  return new Map(candidates.map((c, i) => [c, c.lossSeconds - worth * (freed[i] ?? 0)]));
}

function bytesFreed(c: EvictionCandidate, deficits: BytesByDevice): number {
  let bytes = 0;
  for (const device of deficits.keys()) bytes += c.frees.get(device) ?? 0;
  return bytes;
}

/** The candidates of as many bands, from the lowest up, as the deficits need; undefined when all of them do not do. */
function lowestBands(
  deficits: BytesByDevice,
  candidates: readonly EvictionCandidate[],
): readonly EvictionCandidate[] | undefined {
  const first = candidates[0]?.band;
  if (candidates.every((c) => c.band === first)) return covers(deficits, candidates) ? candidates : undefined;
  const bands = new Set(candidates.map((c) => c.band));
  for (const highest of [...bands].sort((a, b) => a - b)) {
    const eligible = candidates.filter((c) => c.band <= highest);
    if (covers(deficits, eligible)) return eligible;
  }
  return undefined;
}

/** Lowest band first, then the least loss for what is gained. */
function byLossForGain(
  candidates: readonly EvictionCandidate[],
  deficits: BytesByDevice,
  lossOf: (candidate: EvictionCandidate) => number,
): readonly EvictionCandidate[] {
  const rates = new Map<EvictionCandidate, number>();
  for (const c of candidates) rates.set(c, lossOf(c) / gain(c, deficits));
  const rate = (c: EvictionCandidate): number => rates.get(c) ?? 0;
  return [...candidates].sort((a, b) => a.band - b.band || rate(a) - rate(b) || ties(a, b));
}

function byOrder(
  order: Exclude<EvictionOrder, 'loss'>,
  deficits: BytesByDevice,
): (a: EvictionCandidate, b: EvictionCandidate) => number {
  switch (order) {
    case 'lru':
      return (a, b) => a.band - b.band || ties(a, b);
    case 'gdsf':
      // Greedy-dual size-frequency: aged calls · cost ÷ size.
      return (a, b) => a.band - b.band || worth(a, deficits) - worth(b, deficits) || ties(a, b);
    case 'classic':
      return (a, b) => a.band - b.band || mismatch(a, deficits) - mismatch(b, deficits) || ties(a, b);
  }
}

const worth = (c: EvictionCandidate, deficits: BytesByDevice): number =>
  (c.agedCalls * c.reloadSeconds) / gain(c, deficits);

/** 1 for a resident that also holds bytes where none are wanted. */
const mismatch = (c: EvictionCandidate, deficits: BytesByDevice): number =>
  [...c.frees].some(([device, bytes]) => bytes > 0 && !deficits.has(device)) ? 1 : 0;

/** Bytes of a candidate that count towards the deficits, at least 1. */
function gain(c: EvictionCandidate, deficits: BytesByDevice): number {
  let bytes = 0;
  for (const [device, deficit] of deficits) bytes += Math.min(deficit, c.frees.get(device) ?? 0);
  return Math.max(1, bytes);
}

/** Candidates in their order until the deficits are covered; one that helps no uncovered device is passed over. */
function takeUntilCovered(
  deficits: BytesByDevice,
  sorted: readonly EvictionCandidate[],
): readonly EvictionCandidate[] {
  const left = new Map(deficits);
  let open = left.size;
  const taken: EvictionCandidate[] = [];
  for (const candidate of sorted) {
    if (open === 0) break;
    let helps = false;
    for (const [device, bytes] of candidate.frees) helps ||= bytes > 0 && (left.get(device) ?? 0) > 0;
    if (!helps) continue;
    taken.push(candidate);
    for (const [device, bytes] of candidate.frees) {
      const before = left.get(device);
      if (before === undefined) continue;
      left.set(device, before - bytes);
      if (before > 0 && before - bytes <= 0) open -= 1;
    }
  }
  return taken;
}

export function covers(deficits: BytesByDevice, set: readonly EvictionCandidate[]): boolean {
  for (const [device, deficit] of deficits) if (freedBy(set, device) < deficit) return false;
  return true;
}

/** Drops what the others make superfluous: the highest band first, then the largest loss, then the shortest idle. */
export function dropSuperfluous(
  deficits: BytesByDevice,
  taken: readonly EvictionCandidate[],
): readonly EvictionCandidate[] {
  if (taken.length < 2) return taken;
  const spare = new Map<DeviceId, number>();
  for (const [device, deficit] of deficits) spare.set(device, freedBy(taken, device) - deficit);
  const dropped = new Set<EvictionCandidate>();
  const dearestFirst = [...taken].sort(
    (a, b) => b.band - a.band || b.lossSeconds - a.lossSeconds || -ties(a, b),
  );
  for (const candidate of dearestFirst) {
    let superfluous = true;
    for (const [device, bytes] of spare) superfluous &&= (candidate.frees.get(device) ?? 0) <= bytes;
    if (!superfluous) continue;
    dropped.add(candidate);
    for (const [device, bytes] of spare) spare.set(device, bytes - (candidate.frees.get(device) ?? 0));
  }
  return dropped.size === 0 ? taken : taken.filter((c) => !dropped.has(c));
}

export function freedBy(victims: readonly EvictionCandidate[], deviceId: DeviceId): number {
  let bytes = 0;
  for (const victim of victims) bytes += victim.frees.get(deviceId) ?? 0;
  return bytes;
}
