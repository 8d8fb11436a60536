/** A reproducible source of numbers: the same seed gives the same file, byte for byte. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Standard normal. */
  normal(): number;
  /** `count` uniform bytes. */
  bytes(count: number): Buffer;
}

/** xorshift128, seeded by splitmix32; quality is ample for weights, and it is fast. */
export function seededRandom(seed: number): Random {
  let s = seed >>> 0;
  const splitmix = () => {
    s = (s + 0x9e3779b9) >>> 0;
    let z = s;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
  let a = splitmix() | 1;
  let b = splitmix();
  let c = splitmix();
  let d = splitmix();
  const word = (): number => {
    const t = a ^ (a << 11);
    a = b;
    b = c;
    c = d;
    d = (d ^ (d >>> 19) ^ t ^ (t >>> 8)) >>> 0;
    return d;
  };
  const next = () => word() / 0x1_0000_0000;
  return {
    next,
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    bytes: (count) => {
      const out = Buffer.allocUnsafe(count);
      let i = 0;
      for (; i + 4 <= count; i += 4) out.writeUInt32LE(word(), i);
      for (; i < count; i++) out[i] = word() & 0xff;
      return out;
    },
  };
}
