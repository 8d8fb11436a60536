import fc from 'fast-check';

/** GGUF headers of every value type, for tests. */
export type SampleValue =
  | { readonly type: 0 | 1 | 2 | 3 | 4 | 5 | 6 | 12; readonly value: number }
  | { readonly type: 7; readonly value: boolean }
  | { readonly type: 8; readonly value: string }
  | { readonly type: 10 | 11; readonly value: bigint }
  | { readonly type: 9; readonly of: number; readonly value: readonly SampleValue[] };

export interface SampleTensor {
  readonly name: string;
  readonly shape: readonly bigint[];
  readonly type: number;
  readonly offset: bigint;
}
export interface SampleHeader {
  readonly pairs: readonly (readonly [string, SampleValue])[];
  readonly tensors: readonly SampleTensor[];
}

export function headerBytes({ pairs, tensors }: SampleHeader): Buffer {
  const out: Buffer[] = [Buffer.from('GGUF'), u32(3), u64(BigInt(tensors.length)), u64(BigInt(pairs.length))];
  for (const [key, value] of pairs) out.push(text(key), u32(value.type), encoded(value));
  for (const { name, shape, type, offset } of tensors) {
    out.push(text(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset));
  }
  return Buffer.concat(out);
}

const of = (bytes: number, write: (b: Buffer) => void) => {
  const b = Buffer.alloc(bytes);
  write(b);
  return b;
};
const u32 = (n: number) => of(4, (b) => b.writeUInt32LE(n));
const u64 = (n: bigint) => of(8, (b) => b.writeBigUInt64LE(n));
const text = (s: string) => Buffer.concat([u64(BigInt(Buffer.byteLength(s))), Buffer.from(s)]);

function encoded(one: SampleValue): Buffer {
  switch (one.type) {
    case 0:
      return of(1, (b) => b.writeUInt8(one.value));
    case 1:
      return of(1, (b) => b.writeInt8(one.value));
    case 2:
      return of(2, (b) => b.writeUInt16LE(one.value));
    case 3:
      return of(2, (b) => b.writeInt16LE(one.value));
    case 4:
      return u32(one.value);
    case 5:
      return of(4, (b) => b.writeInt32LE(one.value));
    case 6:
      return of(4, (b) => b.writeFloatLE(one.value));
    case 7:
      return Buffer.from([one.value ? 1 : 0]);
    case 8:
      return text(one.value);
    case 9:
      return Buffer.concat([u32(one.of), u64(BigInt(one.value.length)), ...one.value.map(encoded)]);
    case 10:
      return u64(one.value);
    case 11:
      return of(8, (b) => b.writeBigInt64LE(one.value));
    case 12:
      return of(8, (b) => b.writeDoubleLE(one.value));
  }
}

const int = (min: number, max: number) => fc.integer({ min, max });
const words = fc.string({ unit: 'grapheme', maxLength: 300 }).filter((s) => !s.includes('\ufeff'));
const SCALARS: Readonly<Record<number, fc.Arbitrary<SampleValue>>> = {
  0: int(0, 255).map((value) => ({ type: 0 as const, value })),
  1: int(-128, 127).map((value) => ({ type: 1 as const, value })),
  2: int(0, 65_535).map((value) => ({ type: 2 as const, value })),
  3: int(-32_768, 32_767).map((value) => ({ type: 3 as const, value })),
  4: int(0, 0xffffffff).map((value) => ({ type: 4 as const, value })),
  5: int(-0x80000000, 0x7fffffff).map((value) => ({ type: 5 as const, value })),
  6: fc.float().map((value) => ({ type: 6 as const, value })),
  7: fc.boolean().map((value) => ({ type: 7 as const, value })),
  8: words.map((value) => ({ type: 8 as const, value })),
  10: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ type: 10 as const, value })),
  11: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => ({ type: 11 as const, value })),
  12: fc.double().map((value) => ({ type: 12 as const, value })),
};
const scalar = fc.oneof(...Object.values(SCALARS));
const list = (items: fc.Arbitrary<SampleValue>, ofType: number) =>
  fc.array(items, { maxLength: 6 }).map((value) => ({ type: 9 as const, of: ofType, value }));
const flat = fc.oneof(...Object.entries(SCALARS).map(([type, items]) => list(items, Number(type))));
const nested = list(fc.oneof(flat), 9);

const key = fc.oneof(
  fc.constantFrom('general.architecture', 'tokenizer.ggml.tokens', 'tokenizer.chat_template', '__proto__x'),
  fc.stringMatching(/^[a-z_.]{1,20}$/),
);

/** Keys may come twice, as in files that were put together by hand: the last one counts. */
export const sampleHeader: fc.Arbitrary<SampleHeader> = fc.record({
  pairs: fc
    .array(fc.tuple(key, fc.oneof(scalar, flat, nested)), { maxLength: 8 })
    .map((pairs) => pairs.filter(([name]) => name !== 'general.alignment')),
  tensors: fc.uniqueArray(
    fc.record({
      name: fc.string({ unit: 'grapheme', maxLength: 20 }).filter((s) => !s.includes('\ufeff')),
      shape: fc.array(fc.bigInt({ min: 0n, max: 2n ** 31n }), { maxLength: 4 }),
      type: int(0, 40),
      offset: fc.bigInt({ min: 0n, max: 2n ** 52n }),
    }),
    { maxLength: 8, selector: ({ name }) => name },
  ),
});
