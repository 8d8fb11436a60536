import { blockTensors, blockValues } from './blocks.js';
import { chainWeights } from './chain.js';
import type { DecoderShape } from './decoder-shape.js';
import { FILE_TYPES } from './encode.js';
import type { HeaderValue, TensorSpec } from './gguf-writer.js';
import { CHAT_TEMPLATE, scriptLinks, type Script } from './script.js';
import { tensorMaker } from './tensors.js';
import { buildVocabulary } from './vocabulary.js';

export interface ModelParts {
  readonly header: Record<string, HeaderValue>;
  readonly tensors: readonly TensorSpec[];
}

/** A chat model that says the script; see chain.ts for how. */
export function decoder(shape: DecoderShape, script: Script, seed: number): ModelParts {
  const { architecture: a, width, heads, headSize, feedForward, experts } = shape;
  const { links, words, first } = scriptLinks(script);
  const vocabulary = buildVocabulary(words);
  const make = tensorMaker(shape.type, seed);
  const { embeddings, outputs } = chainWeights(vocabulary, links, first, width, seed);
  const vocabularyTokens = vocabulary.tokens.length;

  const header: Record<string, HeaderValue> = {
    'general.architecture': { text: a },
    'general.file_type': { u32: FILE_TYPES[shape.type] },
    'general.quantization_version': { u32: 2 },
    [`${a}.vocab_size`]: { u32: vocabularyTokens },
    [`${a}.context_length`]: { u32: shape.contextTokens },
    [`${a}.embedding_length`]: { u32: width },
    [`${a}.block_count`]: { u32: shape.blocks },
    [`${a}.feed_forward_length`]: { u32: feedForward },
    [`${a}.attention.head_count`]: { u32: heads },
    ...blockValues(shape),
    [`${a}.attention.key_length`]: { u32: headSize },
    [`${a}.attention.value_length`]: { u32: headSize },
    [`${a}.attention.layer_norm_rms_epsilon`]: { f32: 1e-5 },
    [`${a}.rope.dimension_count`]: { u32: headSize },
    [`${a}.rope.freq_base`]: { f32: 10_000 },
    ...(experts && {
      [`${a}.expert_count`]: { u32: experts.count },
      [`${a}.expert_used_count`]: { u32: experts.used },
      [`${a}.expert_feed_forward_length`]: { u32: feedForward },
    }),
    ...vocabulary.headerValues(),
    'tokenizer.chat_template': { text: CHAT_TEMPLATE },
  };

  const tensors: TensorSpec[] = [
    make.exact('token_embd.weight', [width, vocabularyTokens], embeddings),
    make.ones('output_norm.weight', width),
    make.exact('output.weight', [width, vocabularyTokens], outputs),
  ];
  for (let b = 0; b < shape.blocks; b++) tensors.push(...blockTensors(shape, b, make));
  return { header, tensors };
}
