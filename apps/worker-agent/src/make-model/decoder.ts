import { chainWeights } from './chain.js';
import { FILE_TYPES, type TensorType } from './encode.js';
import type { HeaderValue, TensorSpec } from './gguf-writer.js';
import { CHAT_TEMPLATE, scriptLinks, type Script } from './script.js';
import { tensorMaker } from './tensors.js';
import { buildVocabulary } from './vocabulary.js';

/** Sizes of a chat model. */
export interface DecoderShape {
  readonly architecture: 'llama' | 'qwen3moe';
  readonly width: number;
  readonly blocks: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** A multiple of 32: quantised KV caches need it. */
  readonly headSize: number;
  readonly feedForward: number;
  readonly contextTokens: number;
  readonly type: TensorType;
  readonly experts?: { readonly count: number; readonly used: number };
}

export interface ModelParts {
  readonly header: Record<string, HeaderValue>;
  readonly tensors: readonly TensorSpec[];
}

/** A chat model that says the script; see chain.ts for how. */
export function decoder(shape: DecoderShape, script: Script, seed: number): ModelParts {
  const { architecture: a, width, heads, kvHeads, headSize, feedForward, experts } = shape;
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
    [`${a}.attention.head_count_kv`]: { u32: kvHeads },
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
  for (let b = 0; b < shape.blocks; b++) {
    const at = (name: string) => `blk.${b}.${name}.weight`;
    tensors.push(
      make.ones(at('attn_norm'), width),
      make.random(at('attn_q'), [width, heads * headSize]),
      make.random(at('attn_k'), [width, kvHeads * headSize]),
      make.random(at('attn_v'), [width, kvHeads * headSize]),
      make.zeros(at('attn_output'), [heads * headSize, width]),
      make.ones(at('ffn_norm'), width),
    );
    if (a === 'qwen3moe') {
      tensors.push(make.ones(at('attn_q_norm'), headSize), make.ones(at('attn_k_norm'), headSize));
    }
    if (experts) {
      tensors.push(
        make.random(at('ffn_gate_inp'), [width, experts.count], 'F32'),
        make.random(at('ffn_gate_exps'), [width, feedForward, experts.count]),
        make.random(at('ffn_up_exps'), [width, feedForward, experts.count]),
        make.zeros(at('ffn_down_exps'), [feedForward, width, experts.count]),
      );
    } else {
      tensors.push(
        make.random(at('ffn_gate'), [width, feedForward]),
        make.random(at('ffn_up'), [width, feedForward]),
        make.zeros(at('ffn_down'), [feedForward, width]),
      );
    }
  }
  return { header, tensors };
}
