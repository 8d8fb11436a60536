import type { DeviceId } from '#domain/ids.js';
import type { BytesByDevice } from './charges.js';

interface Candidate {
  readonly band: number;
  readonly frees: BytesByDevice;
}

/** What is lost by a candidate, 0 or more. */
type LossOf<C> = (candidate: C) => number;

const EPSILON = 1e-9;

export interface Found<C> {
  readonly set: readonly C[];
  /** False when the search ended at its limit: a better set may exist. */
  readonly exact: boolean;
  /** Search nodes that were visited. */
  readonly nodes: number;
}

/**
 * The set of least loss that covers the deficits, by branch and bound. Loss is compared band by band, the highest
 * first: no loss in a lower band outweighs one in a higher. Of equal sets the first in the given order is kept.
 * @param sorted highest band first, then by loss for what is gained
 * @param start a covering set to begin with
 * @param lossOf what each loses; sums of it are compared
 */
export function cheapestSet<C extends Candidate>(
  deficits: BytesByDevice,
  sorted: readonly C[],
  start: readonly C[],
  nodeLimit: number,
  lossOf: LossOf<C>,
): Found<C> {
  if (isLeastLoss(deficits, sorted, start, lossOf)) return { set: start, exact: true, nodes: 0 };
  return new Search(deficits, sorted, start, nodeLimit, lossOf).run();
}

/** Whether the linear relaxation already says that no set loses less: on one device, in one band. */
function isLeastLoss<C extends Candidate>(
  deficits: BytesByDevice,
  sorted: readonly C[],
  start: readonly C[],
  lossOf: LossOf<C>,
): boolean {
  if (deficits.size !== 1 || sorted[0]?.band !== sorted.at(-1)?.band) return false;
  for (const [device, deficit] of deficits) {
    let loss = 0;
    for (const c of start) loss += lossOf(c);
    let need = deficit;
    for (const c of sorted) {
      if (need <= 0) break;
      const bytes = Math.min(deficit, c.frees.get(device) ?? 0);
      if (bytes <= 0) continue;
      loss -= lossOf(c) * Math.min(1, need / bytes);
      need -= bytes;
    }
    return loss <= EPSILON;
  }
  return false;
}

class Search<C extends Candidate> {
  readonly #sorted: readonly C[];
  readonly #count: number;
  readonly #width: number;
  /** By candidate, then device. */
  readonly #frees: Float64Array;
  /** What all candidates from one on could still free, by candidate, then device: the bound on feasibility. */
  readonly #rest: Float64Array;
  readonly #loss: Float64Array;
  readonly #bandOf: Int32Array;
  /** First candidate after the band of each candidate. */
  readonly #bandEnd: Int32Array;
  readonly #deficit: number;
  readonly #left: Float64Array;
  readonly #cost: Float64Array;
  readonly #bestCost: Float64Array;
  readonly #taken: number[] = [];
  readonly #nodeLimit: number;
  #best: readonly C[];
  #nodes = 0;

  constructor(
    deficits: BytesByDevice,
    sorted: readonly C[],
    start: readonly C[],
    nodeLimit: number,
    lossOf: LossOf<C>,
  ) {
    const devices: readonly DeviceId[] = [...deficits.keys()];
    const n = sorted.length;
    const width = devices.length;
    this.#sorted = sorted;
    this.#count = n;
    this.#width = width;
    this.#frees = new Float64Array(n * width);
    this.#rest = new Float64Array((n + 1) * width);
    this.#loss = new Float64Array(n);
    this.#bandOf = new Int32Array(n);
    this.#bandEnd = new Int32Array(n);
    this.#left = Float64Array.from(devices, (d) => deficits.get(d) ?? 0);
    this.#deficit = this.#left[0] ?? 0;
    this.#nodeLimit = nodeLimit;
    this.#best = start;
    const bands: number[] = [];
    for (let i = n - 1; i >= 0; i--) {
      const c = sorted[i];
      if (!c) continue;
      this.#loss[i] = lossOf(c);
      for (let d = 0; d < width; d++) {
        const device = devices[d];
        const bytes = device === undefined ? 0 : (c.frees.get(device) ?? 0);
        this.#frees[i * width + d] = bytes;
        this.#rest[i * width + d] = (this.#rest[(i + 1) * width + d] ?? 0) + bytes;
      }
      const next = i + 1 < n ? sorted[i + 1] : undefined;
      this.#bandEnd[i] = next?.band === c.band ? (this.#bandEnd[i + 1] ?? n) : i + 1;
    }
    sorted.forEach((c, i) => {
      if (bands.at(-1) !== c.band) bands.push(c.band);
      this.#bandOf[i] = bands.length - 1;
    });
    this.#cost = new Float64Array(bands.length);
    this.#bestCost = new Float64Array(bands.length);
    for (const c of start) {
      const band = bands.indexOf(c.band);
      this.#bestCost[band] = (this.#bestCost[band] ?? 0) + lossOf(c);
    }
  }

  run(): Found<C> {
    this.#visit(0);
    return { set: this.#best, exact: this.#nodes <= this.#nodeLimit, nodes: this.#nodes };
  }

  #visit(index: number): void {
    if (++this.#nodes > this.#nodeLimit) return;
    if (this.#isCovered()) {
      if (this.#isHopeless(-1)) return;
      this.#best = this.#taken.flatMap((i) => this.#sorted[i] ?? []);
      this.#bestCost.set(this.#cost);
      return;
    }
    if (index >= this.#count || !this.#isPossible(index) || this.#isHopeless(index)) return;
    if (this.#helps(index)) {
      const band = this.#bandOf[index] ?? 0;
      const before = this.#cost[band] ?? 0;
      this.#give(index, -1);
      this.#cost[band] = before + (this.#loss[index] ?? 0);
      this.#taken.push(index);
      this.#visit(index + 1);
      this.#taken.pop();
      this.#cost[band] = before;
      this.#give(index, 1);
    }
    this.#visit(index + 1);
  }

  #give(index: number, sign: 1 | -1): void {
    const { width, frees, left } = { width: this.#width, frees: this.#frees, left: this.#left };
    for (let d = 0; d < width; d++) left[d] = (left[d] ?? 0) + sign * (frees[index * width + d] ?? 0);
  }

  #isCovered(): boolean {
    for (const bytes of this.#left) if (bytes > 0) return false;
    return true;
  }

  #isPossible(index: number): boolean {
    for (let d = 0; d < this.#width; d++)
      if ((this.#left[d] ?? 0) > (this.#rest[index * this.#width + d] ?? 0)) return false;
    return true;
  }

  #helps(index: number): boolean {
    for (let d = 0; d < this.#width; d++)
      if ((this.#left[d] ?? 0) > 0 && (this.#frees[index * this.#width + d] ?? 0) > 0) return true;
    return false;
  }

  /** Whether what was taken, and at least what is still to be taken from `index` on, is no better than the best. */
  #isHopeless(index: number): boolean {
    const current = index < 0 ? -1 : (this.#bandOf[index] ?? 0);
    for (let band = 0; band < this.#cost.length; band++) {
      const still = band === current ? this.#leastLossFrom(index) : 0;
      const difference = (this.#cost[band] ?? 0) + still - (this.#bestCost[band] ?? 0);
      if (difference > EPSILON) return true;
      if (difference < -EPSILON) return false;
    }
    return true;
  }

  /**
   * What the band of a candidate must still lose at least, when all of the lower bands goes and its own may be taken in
   * parts: the linear relaxation for one device, as the candidates are sorted by loss for what is gained. More than the
   * whole deficit counts as the deficit, which only brings the bound nearer.
   */
  #leastLossFrom(index: number): number {
    const end = this.#bandEnd[index] ?? this.#count;
    let most = 0;
    for (let d = 0; d < this.#width; d++) {
      let need = (this.#left[d] ?? 0) - (this.#rest[end * this.#width + d] ?? 0);
      if (need <= 0) continue;
      let loss = 0;
      if (this.#width === 1) {
        for (let i = index; i < end && need > 0; i++) {
          const bytes = Math.min(this.#deficit, this.#frees[i] ?? 0);
          loss += (this.#loss[i] ?? 0) * Math.min(1, need / bytes);
          need -= bytes;
        }
      } else {
        let rate = Infinity;
        for (let i = index; i < end; i++) {
          const bytes = this.#frees[i * this.#width + d] ?? 0;
          if (bytes > 0) rate = Math.min(rate, (this.#loss[i] ?? 0) / bytes);
        }
        loss = rate === Infinity ? 0 : rate * need;
      }
      most = Math.max(most, loss);
    }
    return most;
  }
}
