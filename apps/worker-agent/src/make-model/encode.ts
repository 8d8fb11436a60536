/** How tensor values are stored: type number, block length and bytes per block, as ggml defines them. */
export const TENSOR_TYPES = {
  F32: { number: 0, blockValues: 1, blockBytes: 4 },
  F16: { number: 1, blockValues: 1, blockBytes: 2 },
  Q4_0: { number: 2, blockValues: 32, blockBytes: 18 },
  Q8_0: { number: 8, blockValues: 32, blockBytes: 34 },
} as const;
export type TensorType = keyof typeof TENSOR_TYPES;

/** `general.file_type` of a file whose matrices have the type. */
export const FILE_TYPES: Readonly<Record<TensorType, number>> = { F32: 0, F16: 1, Q4_0: 2, Q8_0: 7 };

/** Stored bytes of a tensor; its first dimension must be a multiple of the block length. */
export function tensorBytes(type: TensorType, shape: readonly number[]): number {
  const { blockValues, blockBytes } = TENSOR_TYPES[type];
  const first = shape[0] ?? 0;
  if (first % blockValues !== 0) {
    throw new RangeError(
      `A ${type} tensor needs rows of a multiple of ${blockValues} values; this one has ${first}.`,
    );
  }
  return (shape.reduce((product, n) => product * n, 1) / blockValues) * blockBytes;
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** IEEE half precision of a number, rounded to nearest; what is too large becomes infinity. */
export function toHalf(value: number): number {
  float[0] = value;
  const x = bits[0] ?? 0;
  const sign = (x >>> 16) & 0x8000;
  const exponent = (x >>> 23) & 0xff;
  const mantissa = x & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (mantissa === 0 ? 0 : 0x200);
  const e = exponent - 127 + 15;
  if (e >= 31) return sign | 0x7c00;
  if (e <= 0) {
    if (e < -10) return sign;
    const full = mantissa | 0x800000;
    const shift = 14 - e;
    return sign | ((full >>> shift) + ((full >>> (shift - 1)) & 1));
  }
  // Rounding may carry into the exponent: that is the right result.
  return sign | (((e << 10) | (mantissa >>> 13)) + ((mantissa >>> 12) & 1));
}

/** Encodes whole blocks; `values.length` must be a multiple of the type's block length. */
export function encodeValues(type: TensorType, values: Float32Array): Buffer {
  const out = Buffer.alloc(tensorBytes(type, [values.length]));
  switch (type) {
    case 'F32':
      for (const [i, v] of values.entries()) out.writeFloatLE(v, i * 4);
      return out;
    case 'F16':
      for (const [i, v] of values.entries()) out.writeUInt16LE(toHalf(v), i * 2);
      return out;
    case 'Q8_0':
      forBlocks(values, (block, index) => {
        const scale = maxAbs(block) / 127;
        out.writeUInt16LE(toHalf(scale), index * 34);
        for (const [i, v] of block.entries()) {
          out.writeInt8(scale === 0 ? 0 : Math.round(v / scale), index * 34 + 2 + i);
        }
      });
      return out;
    case 'Q4_0':
      forBlocks(values, (block, index) => {
        // The value of the largest magnitude maps to -8, the end of the range that has one step more.
        const extreme = block.reduce((best, v) => (Math.abs(v) > Math.abs(best) ? v : best), 0);
        const scale = extreme / -8;
        const q = (v: number) => (scale === 0 ? 8 : Math.min(15, Math.max(0, Math.floor(v / scale + 8.5))));
        out.writeUInt16LE(toHalf(scale), index * 18);
        for (let i = 0; i < 16; i++) {
          out[index * 18 + 2 + i] = q(block[i] ?? 0) | (q(block[i + 16] ?? 0) << 4);
        }
      });
      return out;
  }
}

function forBlocks(values: Float32Array, visit: (block: Float32Array, index: number) => void): void {
  for (let start = 0; start < values.length; start += 32)
    visit(values.subarray(start, start + 32), start / 32);
}

const maxAbs = (block: Float32Array) => block.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
