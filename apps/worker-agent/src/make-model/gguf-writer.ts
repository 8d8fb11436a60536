import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { TENSOR_TYPES, tensorBytes, type TensorType } from './encode.js';

/** A typed value of the header. Whole numbers say their width, since engines insist on it. */
export type HeaderValue =
  | { readonly u32: number }
  | { readonly f32: number }
  | { readonly bool: boolean }
  | { readonly text: string }
  | { readonly texts: readonly string[] }
  | { readonly f32s: readonly number[] }
  | { readonly i32s: readonly number[] };

export interface TensorSpec {
  readonly name: string;
  /** Innermost dimension first, as GGUF stores it. */
  readonly shape: readonly number[];
  readonly type: TensorType;
  /** Encoded data in pieces whose lengths add up to the tensor's bytes. Called once, when it is written. */
  data(): Iterable<Uint8Array>;
}

const ALIGNMENT = 32;
const TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, text: 8, array: 9 } as const;
const padding = (offset: number) => (ALIGNMENT - (offset % ALIGNMENT)) % ALIGNMENT;

/** Bytes of the header: magic, version 3, key/values, tensor table, padded to where the data begins. */
export function encodeHeader(
  values: Readonly<Record<string, HeaderValue>>,
  tensors: readonly TensorSpec[],
): Buffer {
  const out = new Bytes();
  out.raw(Buffer.from('GGUF'));
  out.u32(3);
  out.u64(tensors.length);
  out.u64(Object.keys(values).length);
  for (const [key, value] of Object.entries(values)) {
    out.text(key);
    writeValue(out, value);
  }
  let offset = 0;
  for (const { name, shape, type } of tensors) {
    out.text(name);
    out.u32(shape.length);
    for (const n of shape) out.u64(n);
    out.u32(TENSOR_TYPES[type].number);
    out.u64(offset);
    offset += tensorBytes(type, shape);
    offset += padding(offset);
  }
  out.raw(Buffer.alloc(padding(out.length)));
  return out.all();
}

/**
 * Writes a GGUF file piece by piece, so that its size does not matter for memory, to `<file>.part` and renames it.
 * @returns the bytes written.
 */
export async function writeGguf(
  file: string,
  values: Readonly<Record<string, HeaderValue>>,
  tensors: readonly TensorSpec[],
): Promise<number> {
  const part = `${file}.part`;
  const stream = createWriteStream(part, { highWaterMark: 4 * 1024 * 1024, mode: 0o600 });
  const done = finished(stream);
  try {
    await Promise.race([writeAll(stream, values, tensors), done]);
    await done;
    await rename(part, file);
  } catch (error) {
    stream.destroy();
    await done.catch(() => undefined);
    await rm(part, { force: true });
    throw error;
  }
  return stream.bytesWritten;
}

async function writeAll(
  stream: WriteStream,
  values: Readonly<Record<string, HeaderValue>>,
  tensors: readonly TensorSpec[],
): Promise<void> {
  const put = async (bytes: Uint8Array) => {
    if (!stream.write(bytes)) await once(stream, 'drain');
  };
  await put(encodeHeader(values, tensors));
  for (const tensor of tensors) {
    const wanted = tensorBytes(tensor.type, tensor.shape);
    let written = 0;
    for (const piece of tensor.data()) {
      written += piece.length;
      await put(piece);
    }
    if (written !== wanted) {
      throw new Error(`Tensor ${tensor.name} must have ${wanted} bytes, but ${written} were given.`);
    }
    await put(Buffer.alloc(padding(wanted)));
  }
  stream.end();
}

function writeValue(out: Bytes, value: HeaderValue): void {
  if ('u32' in value) {
    out.u32(TYPE.u32);
    out.u32(value.u32);
  } else if ('f32' in value) {
    out.u32(TYPE.f32);
    out.f32(value.f32);
  } else if ('bool' in value) {
    out.u32(TYPE.bool);
    out.raw(Buffer.from([value.bool ? 1 : 0]));
  } else if ('text' in value) {
    out.u32(TYPE.text);
    out.text(value.text);
  } else if ('texts' in value) {
    array(out, TYPE.text, value.texts, (v) => out.text(v));
  } else if ('f32s' in value) {
    array(out, TYPE.f32, value.f32s, (v) => out.f32(v));
  } else {
    array(out, TYPE.i32, value.i32s, (v) => out.i32(v));
  }
}

function array<T>(out: Bytes, type: number, items: readonly T[], write: (item: T) => void): void {
  out.u32(TYPE.array);
  out.u32(type);
  out.u64(items.length);
  for (const item of items) write(item);
}

class Bytes {
  private readonly pieces: Buffer[] = [];
  length = 0;

  raw(piece: Buffer): void {
    this.pieces.push(piece);
    this.length += piece.length;
  }
  u32(value: number): void {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(value);
    this.raw(b);
  }
  i32(value: number): void {
    const b = Buffer.alloc(4);
    b.writeInt32LE(value);
    this.raw(b);
  }
  f32(value: number): void {
    const b = Buffer.alloc(4);
    b.writeFloatLE(value);
    this.raw(b);
  }
  u64(value: number): void {
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt(value));
    this.raw(b);
  }
  text(value: string): void {
    const b = Buffer.from(value, 'utf8');
    this.u64(b.length);
    this.raw(b);
  }
  all(): Buffer {
    return Buffer.concat(this.pieces);
  }
}
