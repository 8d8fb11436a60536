/* eslint-disable @typescript-eslint/no-non-null-assertion -- every index is within its array by construction, and a check in these loops costs a third of the speed */
/**
 * SHA-256 (FIPS 180-4) whose state can be written down, so that the hash of a large file goes on where it was stopped.
 * Node's own keeps its state to itself.
 */
export interface Sha256State {
  /** The eight words. */
  readonly words: readonly number[];
  /** Bytes taken so far: a multiple of 64. */
  readonly bytes: number;
}

const BLOCK = 64;
const K = new Int32Array(64);
const INITIAL = new Int32Array(8);
{
  // First 32 bits of the fractional parts of the cube (K) and square (INITIAL) roots of the first primes.
  const fraction = (root: number) => ((root - Math.floor(root)) * 0x1_0000_0000) | 0;
  let found = 0;
  for (let n = 2; found < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (!prime) continue;
    if (found < 8) INITIAL[found] = fraction(Math.sqrt(n));
    K[found] = fraction(Math.cbrt(n));
    found += 1;
  }
}

export class Sha256 {
  private readonly words: Int32Array;
  private readonly schedule = new Int32Array(64);
  private bytes: number;

  constructor(state?: Sha256State) {
    this.words = state === undefined ? INITIAL.slice() : Int32Array.from(state.words);
    this.bytes = state?.bytes ?? 0;
  }

  get state(): Sha256State {
    return { words: [...this.words], bytes: this.bytes };
  }

  /** @param data a whole number of 64-byte blocks. */
  update(data: Uint8Array): void {
    if (data.length % BLOCK !== 0) throw new RangeError(`${data.length} bytes are no whole number of blocks`);
    for (let at = 0; at < data.length; at += BLOCK) this.block(data, at);
    this.bytes += data.length;
  }

  /** @param rest what is left of the data, in whole blocks or not. @returns the digest in hex; the state is spent. */
  digest(rest: Uint8Array = new Uint8Array(0)): string {
    const total = this.bytes + rest.length;
    const padded = new Uint8Array(Math.ceil((rest.length + 9) / BLOCK) * BLOCK);
    padded.set(rest);
    padded[rest.length] = 0x80;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 8, Math.floor(total / 0x2000_0000));
    view.setUint32(padded.length - 4, (total * 8) >>> 0);
    this.update(padded);
    return [...this.words].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  private block(data: Uint8Array, at: number): void {
    const w = this.schedule;
    for (let i = 0; i < 16; i++) {
      const j = at + i * 4;
      w[i] = (data[j]! << 24) | (data[j + 1]! << 16) | (data[j + 2]! << 8) | data[j + 3]!;
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
    }
    const h = this.words;
    let a = h[0]!;
    let b = h[1]!;
    let c = h[2]!;
    let d = h[3]!;
    let e = h[4]!;
    let f = h[5]!;
    let g = h[6]!;
    let k = h[7]!;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (k + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      k = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    h[0] = (h[0]! + a) | 0;
    h[1] = (h[1]! + b) | 0;
    h[2] = (h[2]! + c) | 0;
    h[3] = (h[3]! + d) | 0;
    h[4] = (h[4]! + e) | 0;
    h[5] = (h[5]! + f) | 0;
    h[6] = (h[6]! + g) | 0;
    h[7] = (h[7]! + k) | 0;
  }
}
