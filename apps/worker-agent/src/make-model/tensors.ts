import { TENSOR_TYPES, encodeValues, tensorBytes, type TensorType } from './encode.js';
import type { TensorSpec } from './gguf-writer.js';
import { seededRandom } from './random.js';

const POOL_VALUES = 1 << 18;
/** Small enough that sums over a thousand inputs stay far from the end of half precision. */
const SPREAD = 0.05;
const PIECE_BYTES = 1 << 20;

/** Makes tensors of one file; random ones are cut from a pool, so that a large file is written at disk speed. */
export interface TensorMaker {
  random(name: string, shape: readonly number[], type?: TensorType): TensorSpec;
  zeros(name: string, shape: readonly number[], type?: TensorType): TensorSpec;
  ones(name: string, length: number): TensorSpec;
  exact(name: string, shape: readonly number[], values: Float32Array, type?: TensorType): TensorSpec;
}

/** @param matrixType how matrices are stored; vectors and what is said to be F32 are not. */
export function tensorMaker(matrixType: TensorType, seed: number): TensorMaker {
  const random = seededRandom(seed ^ 0x51ed270b);
  const pools = new Map<TensorType, Buffer>();
  const poolOf = (type: TensorType): Buffer => {
    const known = pools.get(type);
    if (known) return known;
    const values = Float32Array.from({ length: POOL_VALUES }, () => random.normal() * SPREAD);
    const pool = encodeValues(type, values);
    pools.set(type, pool);
    return pool;
  };
  const typeFor = (shape: readonly number[], type?: TensorType): TensorType =>
    type ?? (shape.length === 1 ? 'F32' : matrixType);

  return {
    random: (name, shape, type) => {
      const stored = typeFor(shape, type);
      return {
        name,
        shape,
        type: stored,
        *data() {
          const pool = poolOf(stored);
          const { blockBytes } = TENSOR_TYPES[stored];
          let left = tensorBytes(stored, shape);
          let at = Math.floor(random.next() * (pool.length / blockBytes)) * blockBytes;
          while (left > 0) {
            const piece = pool.subarray(at, Math.min(pool.length, at + left));
            left -= piece.length;
            at = 0;
            yield piece;
          }
        },
      };
    },
    zeros: (name, shape, type) => {
      const stored = typeFor(shape, type);
      return {
        name,
        shape,
        type: stored,
        *data() {
          // All-zero bytes are zeros in every type here: a block's scale of 0 makes all its values 0.
          const zeros = Buffer.alloc(PIECE_BYTES);
          let left = tensorBytes(stored, shape);
          while (left > 0) {
            const piece = zeros.subarray(0, Math.min(zeros.length, left));
            left -= piece.length;
            yield piece;
          }
        },
      };
    },
    ones: (name, length) => ({
      name,
      shape: [length],
      type: 'F32',
      data: () => [encodeValues('F32', new Float32Array(length).fill(1))],
    }),
    exact: (name, shape, values, type) => {
      const stored = typeFor(shape, type);
      return { name, shape, type: stored, data: () => [encodeValues(stored, values)] };
    },
  };
}
