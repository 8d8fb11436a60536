import type { DeviceId } from '#domain/ids.js';
import type { EvictionCandidate, EvictionSet } from './eviction-candidate.js';

/**
 * The commonest eviction by far, one device and one band, without a map, a copy or a closure for each plan that is
 * looked at: what it works with lies in columns that every search uses anew. It finds what the general search finds.
 */

/** What a byte that is freed is worth: so much of the least loss for which any candidate gives one up. */
export const FREED_SHARE = 0.7;

/** As many candidates as are searched exactly. */
const COLUMNS = 20;
const EPSILON = 1e-9;

const rates = new Float64Array(COLUMNS);
const frees = new Float64Array(COLUMNS);
const losses = new Float64Array(COLUMNS);
/** What all candidates from one on could still free. */
const rest = new Float64Array(COLUMNS + 1);
/** Before the candidate at a depth was taken. */
const leftAt = new Float64Array(COLUMNS + 1);
const costAt = new Float64Array(COLUMNS + 1);
const branch = new Uint8Array(COLUMNS + 1);
const TAKE = 1;
const SKIP = 2;
const chosen = new Uint8Array(COLUMNS);

export interface FoundOnOne extends EvictionSet {
  /** Search nodes that were visited. */
  readonly nodes: number;
}

/** Longest idle, fewest calls, id. */
export function ties(a: EvictionCandidate, b: EvictionCandidate): number {
  return (
    b.idleSeconds - a.idleSeconds ||
    a.calls - b.calls ||
    (a.residentId < b.residentId ? -1 : a.residentId > b.residentId ? 1 : 0)
  );
}

/** Largest loss first, then the shortest idle: the order in which what is superfluous is dropped. */
const dearestFirst = (a: EvictionCandidate, b: EvictionCandidate): number =>
  b.lossSeconds - a.lossSeconds || -ties(a, b);

/** What a byte on a device is worth to who comes next, in seconds of loss: the same for every deficit. */
export function worthOfByte(deviceId: DeviceId, list: readonly EvictionCandidate[]): number {
  let least = Infinity;
  for (const { frees: of, lossSeconds } of list) {
    const bytes = of.get(deviceId) ?? 0;
    if (bytes > 0) least = Math.min(least, lossSeconds / bytes);
  }
  return least === Infinity ? 0 : FREED_SHARE * least;
}

/**
 * The set of least loss that frees the deficit on a device, the worth of what each frees set against its loss.
 * @param list all of one band, of known size, at most 20; each frees something there, and together they free enough
 */
export function cheapestOnOne(
  deviceId: DeviceId,
  deficitBytes: number,
  list: readonly EvictionCandidate[],
  nodeLimit: number,
  worth = worthOfByte(deviceId, list),
): FoundOnOne {
  const sorted = byRate(deviceId, deficitBytes, list, worth);
  const greedy = greedyOnOne(deficitBytes, sorted);
  const greedyLoss = netLossOf(deviceId, greedy, worth);
  if (relaxedLoss(deficitBytes, sorted.length) >= greedyLoss - EPSILON)
    return { victims: greedy, exact: true, nodes: 0 };
  const nodes = search(deficitBytes, sorted.length, greedyLoss, nodeLimit);
  const exact = Math.abs(nodes) <= nodeLimit;
  if (nodes > 0) return { victims: greedy, exact, nodes };
  const victims = sorted.filter((_, i) => chosen[i] === 1);
  return { victims: withoutSuperfluous(deviceId, deficitBytes, victims), exact, nodes: -nodes };
}

/** By loss for what is gained; fills the columns in that order. */
function byRate(
  deviceId: DeviceId,
  deficitBytes: number,
  list: readonly EvictionCandidate[],
  worth: number,
): readonly EvictionCandidate[] {
  // A copy that is sorted as it is gone through: the places before `count` are in order.
  const sorted = [...list];
  let count = 0;
  for (const candidate of list) {
    const bytes = candidate.frees.get(deviceId) ?? 0;
    const net = candidate.lossSeconds - worth * bytes;
    const rate = net / Math.max(1, Math.min(deficitBytes, bytes));
    let at = count++;
    for (; at > 0; at--) {
      const before = sorted[at - 1];
      if (!before) break;
      const difference = (rates[at - 1] ?? 0) - rate || ties(before, candidate);
      if (difference <= 0) break;
      sorted[at] = before;
      rates[at] = rates[at - 1] ?? 0;
      frees[at] = frees[at - 1] ?? 0;
    }
    sorted[at] = candidate;
    rates[at] = rate;
    frees[at] = bytes;
  }
  rest[sorted.length] = 0;
  for (let i = sorted.length - 1; i >= 0; i--) {
    losses[i] = (sorted[i]?.lossSeconds ?? 0) - worth * (frees[i] ?? 0);
    rest[i] = (rest[i + 1] ?? 0) + (frees[i] ?? 0);
  }
  return sorted;
}

function greedyOnOne(
  deficitBytes: number,
  sorted: readonly EvictionCandidate[],
): readonly EvictionCandidate[] {
  let count = 0;
  let freed = 0;
  let smallest = Infinity;
  for (; count < sorted.length && freed < deficitBytes; count++) {
    freed += frees[count] ?? 0;
    smallest = Math.min(smallest, frees[count] ?? 0);
  }
  const taken = sorted.slice(0, count);
  if (count < 2 || smallest > freed - deficitBytes) return taken;
  const bytesOf = (c: EvictionCandidate): number => frees[sorted.indexOf(c)] ?? 0;
  return dropped(taken, freed - deficitBytes, bytesOf);
}

function withoutSuperfluous(
  deviceId: DeviceId,
  deficitBytes: number,
  taken: readonly EvictionCandidate[],
): readonly EvictionCandidate[] {
  if (taken.length < 2) return taken;
  const bytesOf = (c: EvictionCandidate): number => c.frees.get(deviceId) ?? 0;
  let freed = 0;
  for (const c of taken) freed += bytesOf(c);
  return dropped(taken, freed - deficitBytes, bytesOf);
}

function dropped(
  taken: readonly EvictionCandidate[],
  spareBytes: number,
  bytesOf: (c: EvictionCandidate) => number,
): readonly EvictionCandidate[] {
  let spare = spareBytes;
  const gone = new Set<EvictionCandidate>();
  for (const candidate of [...taken].sort(dearestFirst)) {
    const bytes = bytesOf(candidate);
    if (bytes > spare) continue;
    gone.add(candidate);
    spare -= bytes;
  }
  return gone.size === 0 ? taken : taken.filter((c) => !gone.has(c));
}

function netLossOf(deviceId: DeviceId, set: readonly EvictionCandidate[], worth: number): number {
  let loss = 0;
  for (const c of set) loss += c.lossSeconds - worth * (c.frees.get(deviceId) ?? 0);
  return loss;
}

/** What must be lost at least when candidates may be taken in parts: the linear relaxation. */
const relaxedLoss = (deficitBytes: number, count: number): number =>
  leastFrom(0, count, deficitBytes, deficitBytes);

/** More than the whole deficit counts as the deficit, which only brings the bound nearer. */
function leastFrom(from: number, count: number, leftBytes: number, deficitBytes: number): number {
  let need = leftBytes;
  let loss = 0;
  for (let i = from; i < count && need > 0; i++) {
    const bytes = Math.min(deficitBytes, frees[i] ?? 0);
    loss += (losses[i] ?? 0) * Math.min(1, need / bytes);
    need -= bytes;
  }
  return loss;
}

/**
 * Branch and bound in depth: each candidate is taken, then left. Of equal sets the first is kept.
 * @returns nodes visited; negative when a set of less loss was found, which `chosen` then marks
 */
function search(deficitBytes: number, count: number, startLoss: number, nodeLimit: number): number {
  let best = startLoss;
  let found = false;
  let nodes = 0;
  let at = 0;
  let left = deficitBytes;
  let cost = 0;
  for (;;) {
    nodes += 1;
    let deeper = false;
    if (nodes <= nodeLimit) {
      if (left <= 0) {
        if (cost - best < -EPSILON) {
          best = cost;
          found = true;
          for (let i = 0; i < count; i++) chosen[i] = i < at && branch[i] === TAKE ? 1 : 0;
        }
      } else if (
        at < count &&
        left <= (rest[at] ?? 0) &&
        cost + leastFrom(at, count, left, deficitBytes) - best < -EPSILON
      ) {
        leftAt[at] = left;
        costAt[at] = cost;
        branch[at] = TAKE;
        left -= frees[at] ?? 0;
        cost += losses[at] ?? 0;
        at += 1;
        deeper = true;
      }
    }
    if (deeper) continue;
    at -= 1;
    while (at >= 0 && branch[at] === SKIP) at -= 1;
    if (at < 0) return found ? -nodes : nodes;
    left = leftAt[at] ?? 0;
    cost = costAt[at] ?? 0;
    branch[at] = SKIP;
    at += 1;
  }
}
