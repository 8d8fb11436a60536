import type { TemplateFacts } from './chat-template.js';
import { storedBytes, typeName } from './tensor-types.js';

/** A header value that geometry may ask for; long arrays (the vocabulary) are replaced by their length. */
export type Scalar = string | number | boolean;
export type FactValue = Scalar | readonly Scalar[] | { readonly length: number };

export interface TensorFact {
  readonly name: string;
  /** Innermost dimension first. */
  readonly shape: readonly number[];
  readonly bytes: number;
  /** What it takes when a compressed-tensors folder is loaded; absent: as many as are stored. */
  readonly unpackedBytes?: number;
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

/** Of a file that no engine could read either. */
export const unreadable = (why: string): FileFacts => ({
  values: {},
  tensors: [],
  mainType: 'none',
  broken: why,
});

/** Of a file that could not be read this time. */
export const notNow = (why: string): FileFacts => ({ ...unreadable(why), passing: true });

/** A file as it was when its header was read. */
export interface FileStamp {
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** A GGUF header as gguf-header.ts reads it. */
export interface ParsedHeader {
  readonly values: Readonly<Record<string, FactValue>>;
  readonly tensors: readonly {
    readonly name: string;
    /** Innermost dimension first. */
    readonly shape: readonly number[];
    /** ggml's number of the storage type. */
    readonly type: number;
    /** From where the data begins. */
    readonly offset: number;
  }[];
  /** Where in the file the data begins. */
  readonly dataStart: number;
  readonly template?: TemplateFacts;
}

/**
 * Prices the tensors of a header and checks it against the file's size.
 * @param fileBytes size on disk; a tensor that ends beyond it makes the file broken.
 */
export function factsOf(header: ParsedHeader, fileBytes: number): FileFacts {
  const start = header.dataStart;
  // The table is in the order of the data in all files but rare ones.
  const inOrder = isInOrder(header.tensors)
    ? header.tensors
    : [...header.tensors].sort((a, b) => a.offset - b.offset);
  const bytesByType = new Map<number, number>();
  const tensors: TensorFact[] = [];
  let broken: string | undefined;
  for (let i = 0; i < inOrder.length; i++) {
    const info = inOrder[i];
    if (info === undefined) continue;
    const { name, shape, type, offset } = info;
    let count = 1;
    for (const n of shape) count *= n;
    const next = inOrder[i + 1];
    // Of a storage type that is newer than this code, the distance to the next tensor is the size (and padding).
    const until = next === undefined ? fileBytes - start : next.offset;
    const bytes = storedBytes(type, count) ?? Math.max(0, until - offset);
    const end = offset + bytes;
    if (!Number.isSafeInteger(end)) broken ??= `tensor ${name} claims an impossible size`;
    else if (next !== undefined && end > next.offset) {
      broken ??= `tensor ${name} (${bytes} bytes) reaches into ${next.name}`;
    } else if (start + end > fileBytes) {
      broken ??=
        `the file ends too early: tensor ${name} ends at byte ${start + end}, ` + `the file has ${fileBytes}`;
    }
    bytesByType.set(type, (bytesByType.get(type) ?? 0) + bytes);
    tensors.push({ name, shape, bytes });
  }
  const main = [...bytesByType].reduce<[number, number] | undefined>(
    (best, entry) => (best === undefined || entry[1] > best[1] ? entry : best),
    undefined,
  );
  return {
    values: header.values,
    tensors,
    mainType: main === undefined ? 'none' : typeName(main[0]),
    ...(header.template === undefined ? {} : { template: header.template }),
    ...(broken === undefined ? {} : { broken }),
  };
}

const isInOrder = (tensors: ParsedHeader['tensors']): boolean => {
  for (let i = 1; i < tensors.length; i++) {
    if ((tensors[i]?.offset ?? 0) < (tensors[i - 1]?.offset ?? 0)) return false;
  }
  return true;
};
