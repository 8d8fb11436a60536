import type { BlockGeometry, BlockKind, Geometry } from '#domain/geometry.js';
import type { ModelKind } from '#domain/placement-terms.js';
import { countOf, isObject, textOf, type Json } from './describing.js';
import type { FileFacts, TensorFact } from './file-facts.js';

/** What `config.json` says of the language part: models that also see nest it. */
export function textConfigOf(config: Json): Json {
  for (const key of ['text_config', 'llm_config', 'language_config', 'thinker_config']) {
    const nested = config[key];
    if (isObject(nested)) return key === 'thinker_config' ? textConfigOf(nested) : nested;
  }
  return config;
}

export const trainedContextOf = (config: Json): number | undefined => {
  const text = textConfigOf(config);
  for (const key of [
    'max_position_embeddings',
    'n_positions',
    'max_seq_len',
    'seq_length',
    'model_max_length',
  ])
    if (countOf(text[key]) !== undefined) return countOf(text[key]);
  return undefined;
};

export const expertCountOf = (config: Json): number => {
  const text = textConfigOf(config);
  for (const key of ['num_local_experts', 'num_experts', 'n_routed_experts', 'moe_num_experts'])
    if (countOf(text[key]) !== undefined) return countOf(text[key]) ?? 0;
  return 0;
};

const BLOCK = /(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d+)\./;
const EXPERT = /\.experts\./;
const EMBEDDING = /(?:embed_tokens|tok_embeddings|wte|word_embeddings|embed_in)\.weight$/;
const OUTPUT = /(?:^|\.)(?:lm_head|output|embed_out)\.weight$/;

/**
 * What a plan is priced from, of a folder for transformers: bytes from the headers, caches from its config.
 * @returns undefined when the config does not say what a language model has.
 */
export function geometryOfConfig(
  config: Json,
  kind: ModelKind,
  shards: readonly FileFacts[],
  hasChatTemplate: boolean,
): Geometry | undefined {
  const text = textConfigOf(config);
  const count = countOf(text['num_hidden_layers']) ?? countOf(text['n_layer']) ?? countOf(text['num_layers']);
  if (count === undefined || count > 4096) return undefined;
  const stored = shards.flatMap((shard) => shard.tensors);
  const tensors = isCompressed(config)
    ? stored.map((t) => ({ ...t, bytes: t.unpackedBytes ?? t.bytes }))
    : stored;
  const byBlock = new Map<number, TensorFact[]>();
  let tokenEmbeddingBytes = 0;
  let outputBytes = 0;
  let otherBytes = 0;
  for (const tensor of tensors) {
    // Blocks of a tower that sees or hears are no blocks of the language model.
    const tower = /(?:vision|visual|audio|image|speech)/.test(tensor.name);
    const block = tower ? undefined : BLOCK.exec(tensor.name)?.[1];
    if (block !== undefined) byBlock.set(Number(block), [...(byBlock.get(Number(block)) ?? []), tensor]);
    else if (!tower && EMBEDDING.test(tensor.name)) tokenEmbeddingBytes += tensor.bytes;
    else if (!tower && OUTPUT.test(tensor.name)) outputBytes += tensor.bytes;
    else otherBytes += tensor.bytes;
  }
  const blocks: BlockGeometry[] = [];
  for (let i = 0; i < count; i++) {
    const own = byBlock.get(i) ?? [];
    const expertBytes = sum(own.filter((t) => EXPERT.test(t.name)));
    blocks.push({
      alwaysBytes: sum(own) - expertBytes,
      expertBytes,
      cache: kind === 'chat' ? cacheOf(text, i) : NO_CACHE,
    });
  }
  return {
    architecture: textOf(text['model_type']) ?? textOf(config['model_type']) ?? 'unknown',
    kind,
    trainedContextTokens: trainedContextOf(config) ?? 0,
    embeddingLength: countOf(text['hidden_size']) ?? countOf(text['n_embd']) ?? 0,
    vocabularyTokens: countOf(text['vocab_size']) ?? 0,
    parameters: tensors.reduce((total, t) => total + t.shape.reduce((product, n) => product * n, 1), 0),
    blocks,
    tokenEmbeddingBytes,
    outputBytes,
    tiedOutput: outputBytes === 0 && kind === 'chat',
    otherBytes,
    expertCount: expertCountOf(config),
    expertUsedCount:
      countOf(text['num_experts_per_tok']) ??
      countOf(text['num_experts_per_token']) ??
      countOf(text['moe_topk']) ??
      0,
    hasChatTemplate,
  };
}

/** Such a folder is unpacked as it is loaded. */
function isCompressed(config: Json): boolean {
  const said = config['quantization_config'];
  return isObject(said) && /^compressed[-_]tensors$/.test(textOf(said['quant_method']) ?? '');
}

const NO_CACHE: BlockKind = { kind: 'attention', kvHeads: 0, keyLength: 0, valueLength: 0 };

/** Only entries of `layer_types` that are attention grow with the context. */
function cacheOf(text: Json, index: number): BlockKind {
  const types: unknown = text['layer_types'];
  const type = Array.isArray(types) ? textOf((types as readonly unknown[])[index]) : undefined;
  if (type !== undefined && !/attention$/.test(type)) return recurrentOf(text);
  if (type === 'linear_attention') return recurrentOf(text);
  const rank = countOf(text['kv_lora_rank']);
  if (rank !== undefined && rank > 0) {
    return { kind: 'mla', kvLoraRank: rank, ropeDims: countOf(text['qk_rope_head_dim']) ?? 0 };
  }
  const heads = countOf(text['num_attention_heads']) ?? countOf(text['n_head']) ?? 0;
  const width = countOf(text['hidden_size']) ?? countOf(text['n_embd']) ?? 0;
  const headDim = countOf(text['head_dim']) ?? (heads === 0 ? 0 : Math.floor(width / heads));
  const attention = {
    kvHeads: countOf(text['num_key_value_heads']) ?? heads,
    keyLength: headDim,
    valueLength: headDim,
  };
  const windowTokens = countOf(text['sliding_window']) ?? 0;
  const windowed =
    type === undefined ? text['use_sliding_window'] === true : /sliding|local|chunked/.test(type);
  return windowed && windowTokens > 0
    ? { kind: 'window', ...attention, windowTokens }
    : { kind: 'attention', ...attention };
}

function recurrentOf(text: Json): BlockKind {
  const heads = countOf(text['linear_num_value_heads']);
  if (heads !== undefined) {
    return {
      kind: 'recurrent',
      convKernel: countOf(text['linear_conv_kernel_dim']) ?? 0,
      innerSize: heads * (countOf(text['linear_value_head_dim']) ?? 0),
      groups: countOf(text['linear_num_key_heads']) ?? 0,
      stateSize: countOf(text['linear_key_head_dim']) ?? 0,
    };
  }
  const width = countOf(text['hidden_size']) ?? 0;
  return {
    kind: 'recurrent',
    convKernel:
      countOf(text['mamba_d_conv']) ?? countOf(text['conv_kernel']) ?? countOf(text['conv_L_cache']) ?? 0,
    innerSize:
      countOf(text['mamba_expand']) === undefined ? width : width * (countOf(text['mamba_expand']) ?? 1),
    groups: countOf(text['mamba_n_groups']) ?? countOf(text['n_groups']) ?? 0,
    stateSize: countOf(text['mamba_d_state']) ?? countOf(text['ssm_state_size']) ?? 0,
  };
}

const sum = (tensors: readonly TensorFact[]) => tensors.reduce((total, t) => total + t.bytes, 0);
