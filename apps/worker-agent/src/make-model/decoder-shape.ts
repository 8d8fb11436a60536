import type { TensorType } from './encode.js';

/** Sizes of a chat model. */
export interface DecoderShape {
  /** `granitehybrid` with recurrent blocks, `gemma3` with a window. */
  readonly architecture: 'llama' | 'qwen3moe' | 'granitehybrid' | 'gemma3';
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
  readonly recurrent?: RecurrentShape;
  /** The sliding window of five blocks in six. */
  readonly windowTokens?: number;
}

/** Sizes of the blocks of a hybrid that keep a state in place of a cache (Mamba 2). */
export interface RecurrentShape {
  readonly convKernel: number;
  readonly innerSize: number;
  readonly groups: number;
  readonly stateSize: number;
  readonly heads: number;
  /** The last of so many blocks is attention. */
  readonly attentionEvery: number;
}
