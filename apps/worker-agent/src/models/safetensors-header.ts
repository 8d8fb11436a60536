import { type FileFacts, type TensorFact, unreadable } from './file-facts.js';
import type { ReadOnly } from './read-only.js';

/** Many headers are no longer. */
const FIRST_BYTES = 64 * 1024;
/** The format's own bound on its header. */
const MAX_HEADER_BYTES = 100_000_000;

/**
 * Facts of a safetensors file: eight bytes that say how long the header is, the header in JSON
 * (`{"<name>": {"dtype", "shape", "data_offsets": [from, to]}}`, offsets after the header), then the data without
 * gaps. Experts are summed up per block: a large model has tens of thousands of them.
 * @param mostBytes a longer header is not read.
 * @returns `long` for such a one.
 */
export async function readSafetensors(
  file: ReadOnly,
  fileBytes: number,
  mostBytes = MAX_HEADER_BYTES,
): Promise<FileFacts | 'long'> {
  if (fileBytes === 0) return unreadable('the file is empty');
  const wanted = Math.min(FIRST_BYTES, fileBytes);
  const first = await file.read(Buffer.allocUnsafe(wanted), wanted, 0);
  if (first.length < 8) return unreadable('the file ends within its header');
  const length = first.readUInt32LE(0) + first.readUInt32LE(4) * 2 ** 32;
  if (length > MAX_HEADER_BYTES) {
    return unreadable(`it is no safetensors file: its header would have ${length} bytes`);
  }
  const start = 8 + length;
  if (start > fileBytes) return unreadable('the file ends within its header');
  if (length > mostBytes) return 'long';
  let text = first.subarray(8, start);
  if (text.length < length) {
    const rest = Buffer.allocUnsafe(length - text.length);
    let at = 0;
    while (at < rest.length) {
      const read = await file.read(rest.subarray(at), rest.length - at, first.length + at);
      if (read.length === 0) return unreadable('the file ends within its header');
      at += read.length;
    }
    text = Buffer.concat([text, rest]);
  }
  let header: unknown;
  try {
    header = JSON.parse(text.toString('utf8'));
  } catch {
    return unreadable('its header is no JSON');
  }
  return factsOfSafetensors(header, fileBytes - start);
}

interface Entry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly from: number;
  readonly to: number;
}

/** @param dataBytes what the file has after its header. */
export function factsOfSafetensors(header: unknown, dataBytes: number): FileFacts {
  if (typeof header !== 'object' || header === null || Array.isArray(header)) {
    return unreadable('its header is no table of tensors');
  }
  const entries: Entry[] = [];
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(header as Record<string, unknown>)) {
    if (name === '__metadata__') {
      for (const [key, said] of Object.entries((value ?? {}) as Record<string, unknown>)) {
        if (typeof said === 'string') values[key] = said.slice(0, 256);
      }
      continue;
    }
    const entry = entryOf(name, value);
    if (entry === undefined) return unreadable(`its header says nothing usable of tensor ${name}`);
    entries.push(entry);
  }
  entries.sort((a, b) => a.from - b.from);
  const bytesByType = new Map<string, number>();
  const tensors = new Map<string, TensorFact>();
  let end = 0;
  let broken: string | undefined;
  for (const { name, dtype, shape, from, to } of entries) {
    if (from !== end) broken ??= `tensor ${name} begins at byte ${from} of the data, not at ${end}`;
    end = Math.max(end, to);
    bytesByType.set(dtype, (bytesByType.get(dtype) ?? 0) + to - from);
    const folded = name.replace(/\.experts\.\d+\./, '.experts.*.');
    const known = tensors.get(folded);
    const count = shape.reduce((product, n) => product * n, 1);
    const bytes = to - from;
    const unpacked = bytes * timesUnpacked(name, dtype) + (known ? (known.unpackedBytes ?? known.bytes) : 0);
    const all = bytes + (known?.bytes ?? 0);
    tensors.set(folded, {
      name: folded,
      shape: known ? [(known.shape[0] ?? 0) + count] : folded === name ? shape : [count],
      bytes: all,
      ...(unpacked === all ? {} : { unpackedBytes: unpacked }),
    });
  }
  if (end > dataBytes) {
    broken = `the file ends too early: its tensors take ${end} bytes after the header, it has ${dataBytes}`;
  }
  const main = [...bytesByType].sort((a, b) => b[1] - a[1])[0];
  return {
    values,
    tensors: [...tensors.values()],
    mainType: main?.[0] ?? 'none',
    ...(broken === undefined ? {} : { broken }),
  };
}

/** Packed integers are four times as large when they are unpacked, FP8 twice, and scales are folded into the weights. */
function timesUnpacked(name: string, dtype: string): number {
  if (name.endsWith('.weight_packed')) return 4;
  if (/\.(weight_scale|weight_zero_point|weight_shape|weight_g_idx|input_scale)$/.test(name)) return 0;
  return dtype.startsWith('F8_') ? 2 : 1;
}

function entryOf(name: string, value: unknown): Entry | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { dtype, shape, data_offsets: offsets } = value as Record<string, unknown>;
  if (typeof dtype !== 'string' || !isCounts(shape) || !isCounts(offsets)) return undefined;
  const [from, to] = offsets;
  if (offsets.length !== 2 || from === undefined || to === undefined || to < from) return undefined;
  return { name, dtype, shape, from, to };
}

const isCounts = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && (n as number) >= 0);
