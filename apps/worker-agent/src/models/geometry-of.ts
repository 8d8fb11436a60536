import type { BlockGeometry, Geometry, TemplateAbility } from '#domain/geometry.js';
import type { ModelKind } from '#domain/placement-terms.js';
import { cacheOfBlock } from './block-cache.js';
import type { TemplateFacts } from './chat-template.js';
import type { FileFacts, TensorFact } from './file-facts.js';
import { HeaderKeys, isEncoder } from './header-keys.js';

/** llama.cpp's numbers: 0 none, 1 mean, 2 first, 3 last token, 4 rank. */
export function kindOf(keys: HeaderKeys, tensors: readonly TensorFact[]): ModelKind {
  const pooling = keys.number('pooling_type');
  if (pooling === 4) return 'rerank';
  if (isEncoder(keys.architecture)) {
    return tensors.some((t) => t.name === 'cls.output.weight') && pooling === undefined
      ? 'rerank'
      : 'embedding';
  }
  return pooling !== undefined && pooling >= 1 && pooling <= 3 ? 'embedding' : 'chat';
}

/** Routed experts: one tensor for all (`ffn_up_exps`), or one each in old files (`ffn_up.3`). */
const EXPERT = /^blk\.\d+\.ffn_(?:[a-z_]+_exps|(?:gate|up|down)\.\d+)\b/;
/** By its name; or, whatever it is called, one slice of it for each expert. */
const isOfExperts = ({ name, shape }: TensorFact, expertCount: number): boolean =>
  EXPERT.test(name) || (expertCount > 0 && shape.length >= 3 && shape.at(-1) === expertCount);
const BLOCK = /^blk\.(\d+)\./;
/** Looked up by token, never multiplied with: they stay in host memory beside the token embedding. */
const LOOKUPS = new Set(['token_embd.weight', 'per_layer_token_embd.weight']);

const abilitiesOf = (template: TemplateFacts | undefined): readonly TemplateAbility[] => [
  ...(template?.tools === true ? (['tools'] as const) : []),
  ...(template?.reasoning === true ? (['thinking'] as const) : []),
];

/**
 * What a plan is priced from. `shards` are the facts of all files of the artifact, the first one's keys counting.
 * @returns undefined with the reason in words when the header lacks what no model can be without.
 */
export function geometryOf(shards: readonly FileFacts[]): Geometry | { readonly broken: string } {
  const keys = new HeaderKeys(shards[0]?.values ?? {});
  const tensors = shards.flatMap((shard) => shard.tensors);
  const blockCount = keys.number('block_count');
  if (keys.architecture === '') return { broken: 'the header names no architecture' };
  if (blockCount === undefined) return { broken: `the header has no ${keys.architecture}.block_count` };
  if (tensors.length === 0) return { broken: 'the file holds no weights' };
  if (!Number.isInteger(blockCount) || blockCount < 0 || blockCount > 4096) {
    return { broken: `the header claims ${blockCount} blocks` };
  }

  const byBlock = new Map<number, TensorFact[]>();
  let tokenEmbeddingBytes = 0;
  let outputBytes = 0;
  let otherBytes = 0;
  for (const tensor of tensors) {
    const block = BLOCK.exec(tensor.name)?.[1];
    if (block !== undefined) {
      const list = byBlock.get(Number(block)) ?? [];
      list.push(tensor);
      byBlock.set(Number(block), list);
    } else if (LOOKUPS.has(tensor.name)) tokenEmbeddingBytes += tensor.bytes;
    else if (tensor.name === 'output.weight') outputBytes += tensor.bytes;
    else otherBytes += tensor.bytes;
  }

  const expertCount = keys.number('expert_count') ?? 0;
  const blocks: BlockGeometry[] = [];
  for (let i = 0; i < blockCount; i++) {
    const own = byBlock.get(i) ?? [];
    const expertBytes = sum(own.filter((t) => isOfExperts(t, expertCount)));
    blocks.push({
      alwaysBytes: sum(own) - expertBytes,
      expertBytes,
      cache: cacheOfBlock(keys, i, blockCount, own),
    });
  }
  const tokens = keys.raw('tokenizer.ggml.tokens');
  const embedding = tensors.find((t) => t.name === 'token_embd.weight');
  return {
    architecture: keys.architecture,
    kind: kindOf(keys, tensors),
    trainedContextTokens: keys.number('context_length') ?? 0,
    embeddingLength: keys.number('embedding_length') ?? embedding?.shape[0] ?? 0,
    vocabularyTokens:
      keys.number('vocab_size') ??
      (typeof tokens === 'object' ? tokens.length : undefined) ??
      embedding?.shape[1] ??
      0,
    parameters: tensors.reduce((total, t) => total + t.shape.reduce((product, n) => product * n, 1), 0),
    blocks,
    tokenEmbeddingBytes,
    outputBytes,
    tiedOutput: outputBytes === 0 && !isEncoder(keys.architecture),
    otherBytes,
    expertCount,
    expertUsedCount: keys.number('expert_used_count') ?? 0,
    hasChatTemplate: keys.raw('tokenizer.chat_template') !== undefined,
    abilities: abilitiesOf(shards[0]?.template),
  };
}

const sum = (tensors: readonly TensorFact[]) => tensors.reduce((total, t) => total + t.bytes, 0);
