import type { HeaderValue } from './gguf-writer.js';

/** Token kinds as llama.cpp numbers them. */
const KIND = { normal: 1, unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;

/** SentencePiece writes a space as this character. */
export const SPACE = '▁';

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly kinds: readonly number[];
  /** @throws Error when there is no such token. */
  idOf(token: string): number;
  /** Ids of bytes and single characters: what any text of a caller is split into. */
  readonly textIds: readonly number[];
  headerValues(): Record<string, HeaderValue>;
}

export const END = '<|end|>';
export const ASSISTANT = '<|assistant|>';
/** After this marker a thinking model answers at once. */
export const PLAIN = '<|plain|>';
/** After this marker the model calls a tool. */
export const CALLS = '<|calls|>';
const CONTROL = ['<|system|>', '<|user|>', ASSISTANT, '<|tool|>', END, PLAIN, CALLS];
const USER_DEFINED = ['<think>', '</think>', '<tool_call>', '</tool_call>'];

/**
 * A vocabulary of the SentencePiece kind in which any text can be written: bytes, printable ASCII characters, a few
 * markers, and the given words. Engines abort on two tokens with the same text, so each is taken once.
 */
export function buildVocabulary(words: readonly string[]): Vocabulary {
  const tokens: string[] = [];
  const kinds: number[] = [];
  const ids = new Map<string, number>();
  const add = (token: string, kind: number) => {
    if (ids.has(token)) return;
    ids.set(token, tokens.length);
    tokens.push(token);
    kinds.push(kind);
  };
  add('<unk>', KIND.unknown);
  add('<s>', KIND.control);
  add('</s>', KIND.control);
  const firstText = tokens.length;
  for (let b = 0; b < 256; b++) add(`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`, KIND.byte);
  for (const c of [SPACE, '\n']) add(c, KIND.normal);
  for (let code = 33; code < 127; code++) add(String.fromCharCode(code), KIND.normal);
  const afterText = tokens.length;
  for (const marker of CONTROL) add(marker, KIND.control);
  for (const marker of USER_DEFINED) add(marker, KIND.userDefined);
  for (const word of words) add(word, KIND.normal);

  const idOf = (token: string): number => {
    const id = ids.get(token);
    if (id === undefined) throw new Error(`The vocabulary has no token "${token}".`);
    return id;
  };
  return {
    tokens,
    kinds,
    idOf,
    textIds: Array.from({ length: afterText - firstText }, (_, i) => firstText + i),
    headerValues: () => ({
      'tokenizer.ggml.model': { text: 'llama' },
      'tokenizer.ggml.tokens': { texts: tokens },
      // Earlier tokens merge first; bytes and markers are never merged, so their score does not matter.
      'tokenizer.ggml.scores': { f32s: tokens.map((_, i) => (kinds[i] === KIND.normal ? -i : 0)) },
      'tokenizer.ggml.token_type': { i32s: kinds },
      'tokenizer.ggml.unknown_token_id': { u32: 0 },
      'tokenizer.ggml.bos_token_id': { u32: idOf('<s>') },
      'tokenizer.ggml.eos_token_id': { u32: idOf(END) },
      'tokenizer.ggml.add_bos_token': { bool: false },
      'tokenizer.ggml.add_eos_token': { bool: false },
      'tokenizer.ggml.add_space_prefix': { bool: false },
    }),
  };
}

/** The sentence as tokens: the first word as it stands, each other with the space before it. */
export const sentenceTokens = (sentence: string): readonly string[] =>
  sentence.split(' ').map((word, i) => (i === 0 ? word : SPACE + word));
