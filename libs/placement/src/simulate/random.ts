/**
 * A seeded generator (mulberry32) with the distributions that arrivals need. The same seed gives the same numbers on
 * every machine.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A generator of its own for a named part, so that one part's draws do not move another's. */
  fork(name: string): Random {
    let hash = 2_166_136_261 ^ this.#state;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16_777_619);
    return new Random(hash);
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [0, below). */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** Any of the values; the list must not be empty. */
  pick<T>(values: readonly T[]): T {
    const value = values[this.below(values.length)];
    if (value === undefined) throw new RangeError('nothing to pick from');
    return value;
  }

  shuffled<T>(values: readonly T[]): T[] {
    const list = [...values];
    for (let i = list.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const a = list[i];
      const b = list[j];
      if (a === undefined || b === undefined) continue;
      list[i] = b;
      list[j] = a;
    }
    return list;
  }

  /** Mean 1. */
  exponential(): number {
    return -Math.log(1 - this.next());
  }

  normal(): number {
    return Math.sqrt(2 * this.exponential()) * Math.cos(2 * Math.PI * this.next());
  }

  /** Gamma with the given shape and mean 1 (Marsaglia and Tsang; a shape below 1 by the power of a uniform). */
  gamma(shape: number): number {
    const raised = shape < 1 ? shape + 1 : shape;
    const d = raised - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v <= 0) continue;
      if (Math.log(1 - this.next()) >= 0.5 * x * x + d - d * v + d * Math.log(v)) continue;
      const boost = shape < 1 ? (1 - this.next()) ** (1 / shape) : 1;
      return (d * v * boost) / shape;
    }
  }

  /** Weibull with the given shape and mean 1. */
  weibull(shape: number): number {
    return this.exponential() ** (1 / shape) / gammaFunction(1 + 1 / shape);
  }
}

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
] as const;

/** Γ(x) for x > 0.5, by the Lanczos approximation. */
function gammaFunction(x: number): number {
  const z = x - 1;
  let sum: number = LANCZOS[0];
  for (let i = 1; i < LANCZOS.length; i++) sum += (LANCZOS[i] ?? 0) / (z + i);
  const t = z + 7.5;
  return Math.sqrt(2 * Math.PI) * t ** (z + 0.5) * Math.exp(-t) * sum;
}
