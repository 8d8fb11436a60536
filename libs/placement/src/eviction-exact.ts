import type { DeviceId } from '#domain/ids.js';
import type { BytesByDevice } from './charges.js';

interface Candidate {
  readonly band: number;
  readonly frees: BytesByDevice;
  readonly lossSeconds: number;
}

/** Search nodes before the best set so far is taken: about a millisecond. */
const NODE_LIMIT = 20_000;
const EPSILON = 1e-9;

/**
 * The set of least loss that covers the deficits, by branch and bound. Loss is compared band by band, the highest
 * first: no loss in a lower band outweighs one in a higher. Of equal sets the first in the given order is kept.
 * @param sorted highest band first
 * @param start a covering set to begin with
 */
export function cheapestSet<C extends Candidate>(
  deficits: BytesByDevice,
  sorted: readonly C[],
  start: readonly C[],
): { readonly set: readonly C[]; readonly exact: boolean } {
  const devices: readonly DeviceId[] = [...deficits.keys()];
  const bands = [...new Set(sorted.map((c) => c.band))];
  const bandOf = sorted.map((c) => bands.indexOf(c.band));
  const frees = sorted.map((c) => devices.map((d) => c.frees.get(d) ?? 0));
  // What all candidates from one on could still free, per device: the bound on feasibility.
  const rest = suffixSums(frees, devices.length);
  const left = devices.map((d) => deficits.get(d) ?? 0);
  const cost = bands.map(() => 0);
  const taken: number[] = [];
  let best: readonly C[] = start;
  let bestCost = lossesByBand(start, bands);
  let nodes = 0;
  let exact = true;

  const worse = (): boolean => {
    for (let band = 0; band < bands.length; band++) {
      const difference = (cost[band] ?? 0) - (bestCost[band] ?? 0);
      if (difference > EPSILON) return true;
      if (difference < -EPSILON) return false;
    }
    return true;
  };

  const visit = (index: number): void => {
    if (++nodes > NODE_LIMIT) {
      exact = false;
      return;
    }
    if (worse()) return;
    if (left.every((bytes) => bytes <= 0)) {
      best = taken.map((i) => sorted[i]).filter((c) => c !== undefined);
      bestCost = [...cost];
      return;
    }
    const candidate = sorted[index];
    const possible = rest[index];
    if (!candidate || !possible || left.some((bytes, d) => bytes > (possible[d] ?? 0))) return;
    const own = frees[index] ?? [];
    const band = bandOf[index] ?? 0;
    if (own.some((bytes, d) => bytes > 0 && (left[d] ?? 0) > 0)) {
      const before = cost[band] ?? 0;
      own.forEach((bytes, d) => (left[d] = (left[d] ?? 0) - bytes));
      cost[band] = before + candidate.lossSeconds;
      taken.push(index);
      visit(index + 1);
      taken.pop();
      cost[band] = before;
      own.forEach((bytes, d) => (left[d] = (left[d] ?? 0) + bytes));
    }
    visit(index + 1);
  };
  visit(0);
  return { set: best, exact };
}

function suffixSums(frees: readonly (readonly number[])[], width: number): readonly (readonly number[])[] {
  const sums: number[][] = Array.from({ length: frees.length + 1 }, () => new Array<number>(width).fill(0));
  for (let i = frees.length - 1; i >= 0; i--) {
    for (let d = 0; d < width; d++) {
      const row = sums[i];
      if (row) row[d] = (sums[i + 1]?.[d] ?? 0) + (frees[i]?.[d] ?? 0);
    }
  }
  return sums;
}

function lossesByBand(set: readonly Candidate[], bands: readonly number[]): readonly number[] {
  return bands.map((band) => set.reduce((sum, c) => sum + (c.band === band ? c.lossSeconds : 0), 0));
}
