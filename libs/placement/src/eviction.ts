import type { DeviceId, ModelKey, ResidentId } from '#domain/ids.js';
import { type BytesByDevice, compareText } from './charges.js';
import { cheapestSet } from './eviction-exact.js';
import type { EvictionOrder } from './settings.js';

/** A resident that may be evicted, with what counts for and against it. */
export interface EvictionCandidate {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly band: number;
  readonly frees: BytesByDevice;
  readonly lossSeconds: number;
  readonly reloadSeconds: number;
  readonly idleSeconds: number;
  readonly calls: number;
  /** Its size cannot be told on a device: it is taken only when nothing else suffices. */
  readonly unknownSize: boolean;
}

export interface EvictionSet {
  readonly victims: readonly EvictionCandidate[];
  /** True when no set of less loss would do. */
  readonly exact: boolean;
}

/** Up to so many candidates the best set is searched for exactly. */
export const EXACT_CANDIDATES = 20;

/**
 * The residents to evict so that at least the deficit is freed on each device; undefined when no set does. A lower
 * band is used up before a higher one is touched, a resident of unknown size comes after all others, and no victim is
 * kept that the others make superfluous.
 */
export function evictionSet(
  deficits: BytesByDevice,
  candidates: readonly EvictionCandidate[],
  order: EvictionOrder,
): EvictionSet | undefined {
  const open = new Map([...deficits].filter(([, bytes]) => bytes > 0));
  if (open.size === 0) return { victims: [], exact: true };
  const useful = candidates.filter((c) => [...open.keys()].some((d) => (c.frees.get(d) ?? 0) > 0));
  const known = useful.filter((c) => !c.unknownSize);
  return fromBands(open, known, order) ?? fromBands(open, useful, order);
}

function fromBands(
  deficits: BytesByDevice,
  candidates: readonly EvictionCandidate[],
  order: EvictionOrder,
): EvictionSet | undefined {
  const bands = [...new Set(candidates.map((c) => c.band))].sort((a, b) => a - b);
  const highest = bands.find((band) =>
    covers(
      deficits,
      candidates.filter((c) => c.band <= band),
    ),
  );
  if (highest === undefined) return undefined;
  const eligible = candidates.filter((c) => c.band <= highest);
  if (order !== 'loss') {
    const sorted = [...eligible].sort(byOrder(order, deficits));
    return { victims: dropSuperfluous(deficits, takeUntilCovered(deficits, sorted)), exact: false };
  }
  const greedy = dropSuperfluous(
    deficits,
    takeUntilCovered(
      deficits,
      [...eligible].sort(
        (a, b) =>
          a.band - b.band ||
          a.lossSeconds / gain(a, deficits) - b.lossSeconds / gain(b, deficits) ||
          ties(a, b),
      ),
    ),
  );
  if (eligible.length > EXACT_CANDIDATES) return { victims: greedy, exact: false };
  const sorted = [...eligible].sort((a, b) => b.band - a.band || a.lossSeconds - b.lossSeconds || ties(a, b));
  const { set, exact } = cheapestSet(deficits, sorted, greedy);
  return { victims: dropSuperfluous(deficits, set), exact };
}

/** Longest idle, fewest calls, key. */
const ties = (a: EvictionCandidate, b: EvictionCandidate): number =>
  b.idleSeconds - a.idleSeconds || a.calls - b.calls || compareText(a.residentId, b.residentId);

function byOrder(
  order: Exclude<EvictionOrder, 'loss'>,
  deficits: BytesByDevice,
): (a: EvictionCandidate, b: EvictionCandidate) => number {
  switch (order) {
    case 'lru':
      return (a, b) => a.band - b.band || ties(a, b);
    case 'gdsf':
      // Greedy-dual size-frequency without its clock: calls · cost ÷ size. Idle time, as the tie, does the ageing.
      return (a, b) => a.band - b.band || worth(a, deficits) - worth(b, deficits) || ties(a, b);
    case 'classic':
      return (a, b) => a.band - b.band || mismatch(a, deficits) - mismatch(b, deficits) || ties(a, b);
  }
}

const worth = (c: EvictionCandidate, deficits: BytesByDevice): number =>
  (c.calls * c.reloadSeconds) / gain(c, deficits);

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
  const taken: EvictionCandidate[] = [];
  for (const candidate of sorted) {
    if ([...left.values()].every((bytes) => bytes <= 0)) break;
    if (![...left].some(([device, bytes]) => bytes > 0 && (candidate.frees.get(device) ?? 0) > 0)) continue;
    taken.push(candidate);
    for (const [device, bytes] of candidate.frees) {
      const before = left.get(device);
      if (before !== undefined) left.set(device, before - bytes);
    }
  }
  return taken;
}

export function covers(deficits: BytesByDevice, set: readonly EvictionCandidate[]): boolean {
  for (const [device, deficit] of deficits) {
    let freed = 0;
    for (const candidate of set) freed += candidate.frees.get(device) ?? 0;
    if (freed < deficit) return false;
  }
  return true;
}

/** Drops what the others make superfluous: the highest band first, then the largest loss, then the shortest idle. */
export function dropSuperfluous(
  deficits: BytesByDevice,
  taken: readonly EvictionCandidate[],
): readonly EvictionCandidate[] {
  let kept = taken;
  const dearestFirst = [...taken].sort(
    (a, b) => b.band - a.band || b.lossSeconds - a.lossSeconds || -ties(a, b),
  );
  for (const candidate of dearestFirst) {
    const without = kept.filter((c) => c !== candidate);
    if (covers(deficits, without)) kept = without;
  }
  return kept;
}

export const freedBy = (victims: readonly EvictionCandidate[], deviceId: DeviceId): number =>
  victims.reduce((sum, v) => sum + (v.frees.get(deviceId) ?? 0), 0);
