import type { DecoderShape } from './decoder-shape.js';
import type { HeaderValue, TensorSpec } from './gguf-writer.js';
import type { TensorMaker } from './tensors.js';

const isRecurrent = ({ recurrent }: DecoderShape, block: number): boolean =>
  recurrent !== undefined && block % recurrent.attentionEvery !== recurrent.attentionEvery - 1;

/** Header values of what blocks keep: heads by block, the state's sizes, the window. */
export function blockValues(shape: DecoderShape): Record<string, HeaderValue> {
  const { architecture: a, kvHeads, recurrent, windowTokens } = shape;
  const byBlock = Array.from({ length: shape.blocks }, (_, b) => (isRecurrent(shape, b) ? 0 : kvHeads));
  return {
    [`${a}.attention.head_count_kv`]: recurrent ? { i32s: byBlock } : { u32: kvHeads },
    ...(recurrent && {
      [`${a}.ssm.conv_kernel`]: { u32: recurrent.convKernel },
      [`${a}.ssm.inner_size`]: { u32: recurrent.innerSize },
      [`${a}.ssm.group_count`]: { u32: recurrent.groups },
      [`${a}.ssm.state_size`]: { u32: recurrent.stateSize },
      [`${a}.ssm.time_step_rank`]: { u32: recurrent.heads },
      [`${a}.logit_scale`]: { f32: 1 },
    }),
    ...(windowTokens !== undefined && { [`${a}.attention.sliding_window`]: { u32: windowTokens } }),
  };
}

/** Tensors of one block. Whatever leads back into the residual stream is zero: see chain.ts. */
export function blockTensors(shape: DecoderShape, block: number, make: TensorMaker): readonly TensorSpec[] {
  const at = (name: string) => `blk.${block}.${name}`;
  const mixer = isRecurrent(shape, block) ? recurrentTensors(shape, make, at) : attention(shape, make, at);
  return [
    make.ones(at('attn_norm.weight'), shape.width),
    ...mixer,
    make.ones(at('ffn_norm.weight'), shape.width),
    ...feedForward(shape, make, at),
  ];
}

type Names = (name: string) => string;

function attention(shape: DecoderShape, make: TensorMaker, at: Names): readonly TensorSpec[] {
  const { architecture, width, heads, kvHeads, headSize } = shape;
  const norms = ['qwen3moe', 'gemma3'].includes(architecture)
    ? [make.ones(at('attn_q_norm.weight'), headSize), make.ones(at('attn_k_norm.weight'), headSize)]
    : [];
  const after =
    architecture === 'gemma3'
      ? [make.ones(at('post_attention_norm.weight'), width), make.ones(at('post_ffw_norm.weight'), width)]
      : [];
  return [
    make.random(at('attn_q.weight'), [width, heads * headSize]),
    make.random(at('attn_k.weight'), [width, kvHeads * headSize]),
    make.random(at('attn_v.weight'), [width, kvHeads * headSize]),
    make.zeros(at('attn_output.weight'), [heads * headSize, width]),
    ...norms,
    ...after,
  ];
}

function recurrentTensors(shape: DecoderShape, make: TensorMaker, at: Names): readonly TensorSpec[] {
  const { width, recurrent } = shape;
  if (!recurrent) return [];
  const { convKernel, innerSize, groups, stateSize, heads } = recurrent;
  const channels = innerSize + 2 * groups * stateSize;
  return [
    make.random(at('ssm_in.weight'), [width, innerSize + channels + heads]),
    make.random(at('ssm_conv1d.weight'), [convKernel, channels], 'F32'),
    make.zeros(at('ssm_conv1d.bias'), [channels]),
    make.zeros(at('ssm_dt.bias'), [heads]),
    make.zeros(at('ssm_a'), [1, heads], 'F32'),
    make.zeros(at('ssm_d'), [1, heads], 'F32'),
    make.random(at('ssm_norm.weight'), [innerSize / groups, groups], 'F32'),
    make.zeros(at('ssm_out.weight'), [innerSize, width]),
  ];
}

function feedForward(shape: DecoderShape, make: TensorMaker, at: Names): readonly TensorSpec[] {
  const { width, feedForward: inner, experts } = shape;
  if (experts) {
    return [
      make.random(at('ffn_gate_inp.weight'), [width, experts.count], 'F32'),
      make.random(at('ffn_gate_exps.weight'), [width, inner, experts.count]),
      make.random(at('ffn_up_exps.weight'), [width, inner, experts.count]),
      make.zeros(at('ffn_down_exps.weight'), [inner, width, experts.count]),
    ];
  }
  return [
    make.random(at('ffn_gate.weight'), [width, inner]),
    make.random(at('ffn_up.weight'), [width, inner]),
    make.zeros(at('ffn_down.weight'), [inner, width]),
  ];
}
