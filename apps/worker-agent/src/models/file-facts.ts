import { readTemplate, type TemplateFacts } from './chat-template.js';
import { storedBytes, typeName } from './tensor-types.js';

/** A header value that geometry may ask for; long arrays (the vocabulary) are replaced by their length. */
export type Scalar = string | number | boolean;
export type FactValue = Scalar | readonly Scalar[] | { readonly length: number };

export interface TensorFact {
  readonly name: string;
  /** Innermost dimension first. */
  readonly shape: readonly number[];
  readonly bytes: number;
}

/** What one GGUF or safetensors file says of itself, small enough to keep for every file. */
export interface FileFacts {
  readonly values: Readonly<Record<string, FactValue>>;
  readonly tensors: readonly TensorFact[];
  /** The storage type that most bytes have. */
  readonly mainType: string;
  /** Absent: the file has no chat template. */
  readonly template?: TemplateFacts;
  /** Why it cannot be loaded, in words. The rest says what could be read. */
  readonly broken?: string;
  /** It could not be read this time, which says nothing of the file: it is tried again at the next scan. */
  readonly passing?: true;
}

/** A file as it was when its header was read. */
export interface FileStamp {
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** The parts of a parsed header that are used, as @huggingface/gguf gives them. */
export interface ParsedHeader {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tensorInfos: readonly {
    readonly name: string;
    readonly shape: readonly bigint[];
    readonly dtype: number;
    readonly offset: bigint;
  }[];
  readonly tensorDataOffset: bigint;
}

const MAX_ARRAY = 1024;
const MAX_TEXT = 256;

/**
 * Condenses a header and checks it against the file's size.
 * @param fileBytes size on disk; a tensor that ends beyond it makes the file broken.
 */
export function factsOf(parsed: ParsedHeader, fileBytes: number): FileFacts {
  const values: Record<string, FactValue> = {};
  for (const [key, value] of Object.entries(parsed.metadata)) {
    const kept = condense(key, value);
    if (kept !== undefined) values[key] = kept;
  }
  const written = parsed.metadata['tokenizer.chat_template'];
  const start = Number(parsed.tensorDataOffset);
  const inOrder = [...parsed.tensorInfos].sort((a, b) => Number(a.offset - b.offset));
  const bytesByType = new Map<number, number>();
  const tensors: TensorFact[] = [];
  let broken: string | undefined;
  for (const [i, info] of inOrder.entries()) {
    const shape = info.shape.map(Number);
    const count = shape.reduce((product, n) => product * n, 1);
    const next = inOrder[i + 1];
    // Of a storage type that is newer than this code, the distance to the next tensor is the size (and padding).
    const until = next === undefined ? fileBytes - start : Number(next.offset);
    const bytes = storedBytes(info.dtype, count) ?? Math.max(0, until - Number(info.offset));
    const end = Number(info.offset) + bytes;
    if (!Number.isSafeInteger(end)) broken ??= `tensor ${info.name} claims an impossible size`;
    else if (next !== undefined && end > Number(next.offset)) {
      broken ??= `tensor ${info.name} (${bytes} bytes) reaches into ${next.name}`;
    } else if (start + end > fileBytes) {
      broken ??=
        `the file ends too early: tensor ${info.name} ends at byte ${start + end}, ` +
        `the file has ${fileBytes}`;
    }
    bytesByType.set(info.dtype, (bytesByType.get(info.dtype) ?? 0) + bytes);
    tensors.push({ name: info.name, shape, bytes });
  }
  const main = [...bytesByType].reduce<[number, number] | undefined>(
    (best, entry) => (best === undefined || entry[1] > best[1] ? entry : best),
    undefined,
  );
  return {
    values,
    tensors,
    mainType: main === undefined ? 'none' : typeName(main[0]),
    ...(typeof written === 'string' ? { template: readTemplate(written) } : {}),
    ...(broken === undefined ? {} : { broken }),
  };
}

function condense(key: string, value: unknown): FactValue | undefined {
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    if (key.startsWith('tokenizer.') || items.length > MAX_ARRAY) return { length: items.length };
    const kept = items.map((item) => scalar(item)).filter((item) => item !== undefined);
    return kept.length === items.length ? kept : { length: items.length };
  }
  return scalar(value);
}

function scalar(value: unknown): Scalar | undefined {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  // A chat template may be long; that there is one is all that is asked.
  if (typeof value === 'string') return value.slice(0, MAX_TEXT);
  return undefined;
}
