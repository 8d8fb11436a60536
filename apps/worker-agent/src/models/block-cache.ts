import type { BlockKind } from '#domain/geometry.js';
import type { TensorFact } from './file-facts.js';
import { isEncoder, type HeaderKeys } from './header-keys.js';

/**
 * How often a block sees the whole context where the file does not say it, as llama.cpp fixes it by architecture:
 * every n-th block does, the last of each n or the first. Others that name a window are taken as full attention,
 * which is never too small.
 */
const FULL_EVERY: Readonly<Record<string, { readonly blocks: number; readonly first?: true }>> = {
  afmoe: { blocks: 4 },
  cohere2: { blocks: 4 },
  exaone4: { blocks: 4 },
  'exaone-moe': { blocks: 4 },
  gemma2: { blocks: 2 },
  gemma3: { blocks: 6 },
  gemma3n: { blocks: 5 },
  'gpt-oss': { blocks: 2 },
  llama4: { blocks: 4 },
  olmo2: { blocks: 4 },
  plamo3: { blocks: 8 },
  smallthinker: { blocks: 4, first: true },
};
/** Chunked attention of this length is built into the architecture. */
const LLAMA4_WINDOW_TOKENS = 8192;
/** Blocks from this one on read the cache of earlier ones. */
const GEMMA3N_OWN_CACHES = 20;

const NO_CACHE: BlockKind = { kind: 'attention', kvHeads: 0, keyLength: 0, valueLength: 0 };

/** What block `index` keeps of the tokens that it has read; from its tensors first, then from the keys. */
export function cacheOfBlock(
  keys: HeaderKeys,
  index: number,
  blockCount: number,
  tensors: readonly TensorFact[],
): BlockKind {
  if (isEncoder(keys.architecture)) return NO_CACHE;
  const has = (part: string) => tensors.some((t) => t.name.startsWith(`blk.${index}.${part}`));
  const recurrent = recurrentState(keys, has);
  if (recurrent !== undefined) return recurrent;

  const loraRank = keys.number('attention.kv_lora_rank');
  // Files from before the compressed cache have attn_kv_b alone and cache whole heads.
  if (loraRank !== undefined && loraRank > 0 && has('attn_k_b')) {
    return { kind: 'mla', kvLoraRank: loraRank, ropeDims: keys.number('rope.dimension_count') ?? 0 };
  }
  if (index >= ownCaches(keys, blockCount)) return NO_CACHE;

  const heads = keys.perBlock('attention.head_count', index) ?? 0;
  const kvHeads = keys.perBlock('attention.head_count_kv', index) ?? heads;
  const windowTokens = windowOf(keys, index);
  const headLength = heads === 0 ? 0 : Math.floor((keys.number('embedding_length') ?? 0) / heads);
  const length = (name: string) =>
    (windowTokens === undefined ? undefined : keys.number(`attention.${name}_swa`)) ??
    keys.number(`attention.${name}`) ??
    headLength;
  const attention = { kvHeads, keyLength: length('key_length'), valueLength: length('value_length') };
  return windowTokens === undefined
    ? { kind: 'attention', ...attention }
    : { kind: 'window', ...attention, windowTokens };
}

/** State of a fixed size: Mamba and its kin, short convolutions, RWKV; undefined for attention. */
function recurrentState(keys: HeaderKeys, has: (part: string) => boolean): BlockKind | undefined {
  const headSize = keys.number('wkv.head_size');
  const embedding = keys.number('embedding_length') ?? 0;
  if (headSize !== undefined && has('time_mix_')) {
    const shifts = keys.number('token_shift_count') ?? 2;
    return recurrent(shifts + 1, embedding, 0, headSize);
  }
  if (has('shortconv')) return recurrent(keys.number('shortconv.l_cache') ?? 0, embedding, 0, 0);
  // A block with both (Falcon-H1) is counted by its attention, which grows with the context.
  if (!has('ssm_') || has('attn_k.')) return undefined;
  return recurrent(
    keys.number('ssm.conv_kernel') ?? 0,
    keys.number('ssm.inner_size') ?? 0,
    keys.number('ssm.group_count') ?? 0,
    keys.number('ssm.state_size') ?? 0,
  );
}

const recurrent = (convKernel: number, innerSize: number, groups: number, stateSize: number): BlockKind => ({
  kind: 'recurrent',
  convKernel,
  innerSize,
  groups,
  stateSize,
});

/** Blocks before this index have a cache of their own. */
function ownCaches(keys: HeaderKeys, blockCount: number): number {
  const shared = keys.number('attention.shared_kv_layers');
  if (shared !== undefined) return blockCount - shared;
  if (keys.architecture === 'gemma3n') return GEMMA3N_OWN_CACHES;
  // Blocks that predict further tokens come last and keep no cache in ordinary use.
  return blockCount - (keys.number('nextn_predict_layers') ?? 0);
}

function windowOf(keys: HeaderKeys, index: number): number | undefined {
  const said = keys.number('attention.sliding_window');
  const windowTokens = said ?? (keys.architecture === 'llama4' ? LLAMA4_WINDOW_TOKENS : 0);
  if (windowTokens <= 0) return undefined;
  const fixed = FULL_EVERY[keys.architecture];
  const period = keys.number('attention.sliding_window_pattern') ?? fixed?.blocks;
  if (period === undefined) {
    const own = keys.perBlock('attention.sliding_window_pattern', index);
    return own !== undefined && own !== 0 ? windowTokens : undefined;
  }
  if (period === 0) return windowTokens;
  const full = fixed?.first === true ? index % period === 0 : index % period === period - 1;
  return full ? undefined : windowTokens;
}
