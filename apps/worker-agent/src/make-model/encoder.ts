import { FILE_TYPES, type TensorType } from './encode.js';
import type { ModelParts } from './decoder.js';
import type { HeaderValue, TensorSpec } from './gguf-writer.js';
import { tensorMaker } from './tensors.js';
import { buildVocabulary } from './vocabulary.js';

/** llama.cpp's numbers of pooling kinds. */
const POOLING = { mean: 1, rank: 4 } as const;

export interface EncoderShape {
  readonly width: number;
  readonly blocks: number;
  readonly heads: number;
  readonly feedForward: number;
  readonly contextTokens: number;
  readonly type: TensorType;
  readonly pooling: keyof typeof POOLING;
}

/** A BERT with random weights: equal texts give equal vectors (or scores), different ones differ. */
export function encoder(shape: EncoderShape, seed: number): ModelParts {
  const { width, feedForward } = shape;
  const vocabulary = buildVocabulary([]);
  const make = tensorMaker(shape.type, seed);
  const header: Record<string, HeaderValue> = {
    'general.architecture': { text: 'bert' },
    'general.file_type': { u32: FILE_TYPES[shape.type] },
    'general.quantization_version': { u32: 2 },
    'bert.vocab_size': { u32: vocabulary.tokens.length },
    'bert.context_length': { u32: shape.contextTokens },
    'bert.embedding_length': { u32: width },
    'bert.block_count': { u32: shape.blocks },
    'bert.feed_forward_length': { u32: feedForward },
    'bert.attention.head_count': { u32: shape.heads },
    'bert.attention.layer_norm_epsilon': { f32: 1e-6 },
    'bert.attention.causal': { bool: false },
    'bert.pooling_type': { u32: POOLING[shape.pooling] },
    ...vocabulary.headerValues(),
    'tokenizer.ggml.token_type_count': { u32: 2 },
    // A reranker's pair is written with these around its two texts.
    'tokenizer.ggml.add_bos_token': { bool: true },
    'tokenizer.ggml.add_eos_token': { bool: true },
    'tokenizer.ggml.eos_token_id': { u32: vocabulary.idOf('</s>') },
    'tokenizer.ggml.seperator_token_id': { u32: vocabulary.idOf('</s>') },
  };
  const norm = (name: string) => [
    make.ones(`${name}.weight`, width),
    make.zeros(`${name}.bias`, [width], 'F32'),
  ];
  const tensors: TensorSpec[] = [
    make.random('token_embd.weight', [width, vocabulary.tokens.length]),
    make.random('token_types.weight', [width, 2], 'F32'),
    make.random('position_embd.weight', [width, shape.contextTokens], 'F32'),
    ...norm('token_embd_norm'),
  ];
  for (let b = 0; b < shape.blocks; b++) {
    const at = (name: string) => `blk.${b}.${name}.weight`;
    tensors.push(
      make.random(at('attn_q'), [width, width]),
      make.random(at('attn_k'), [width, width]),
      make.random(at('attn_v'), [width, width]),
      make.random(at('attn_output'), [width, width]),
      ...norm(`blk.${b}.attn_output_norm`),
      make.random(at('ffn_up'), [width, feedForward]),
      make.random(at('ffn_down'), [feedForward, width]),
      ...norm(`blk.${b}.layer_output_norm`),
    );
  }
  if (shape.pooling === 'rank') {
    tensors.push(
      make.random('cls.output.weight', [width, 1], 'F32'),
      make.zeros('cls.output.bias', [1], 'F32'),
    );
  }
  return { header, tensors };
}
