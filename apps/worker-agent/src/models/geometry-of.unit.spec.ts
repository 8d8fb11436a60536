import { describe, expect, test } from 'vitest';
import type { Geometry } from '#domain/geometry.js';
import { factsOf, type FactValue, type FileFacts, type TensorFact } from './file-facts.js';
import { geometryOf } from './geometry-of.js';
import { storedBytes } from './tensor-types.js';

const tensor = (name: string, bytes = 100, shape: readonly number[] = [10]): TensorFact => ({
  name,
  bytes,
  shape,
});

function facts(
  architecture: string,
  keys: Record<string, FactValue>,
  tensors: readonly TensorFact[],
): FileFacts {
  const values = Object.fromEntries(Object.entries(keys).map(([k, v]) => [`${architecture}.${k}`, v]));
  return { values: { 'general.architecture': architecture, ...values }, tensors, mainType: 'F16' };
}

function geometry(...shards: readonly FileFacts[]): Geometry {
  const found = geometryOf(shards);
  if ('broken' in found) throw new Error(found.broken);
  return found;
}

const attention = (blocks: number) =>
  Array.from({ length: blocks }, (_, i) => [
    tensor(`blk.${i}.attn_k.weight`),
    tensor(`blk.${i}.ffn_up.weight`),
  ]).flat();
const HEADS = {
  'attention.head_count': 8,
  'attention.head_count_kv': 2,
  embedding_length: 512,
  context_length: 4096,
};
const kinds = (g: Geometry) => g.blocks.map((b) => b.cache.kind);

describe('weights', () => {
  test('experts, embedding, output and the rest are told apart, over all shards', () => {
    const first = facts('qwen3moe', { ...HEADS, block_count: 2, expert_count: 8, expert_used_count: 2 }, [
      tensor('token_embd.weight', 1000, [512, 7]),
      tensor('blk.0.attn_k.weight', 10),
      tensor('blk.0.ffn_up_exps.weight', 400),
      tensor('blk.0.ffn_up_shexp.weight', 30),
      tensor('blk.0.ffn_gate_inp.weight', 5),
    ]);
    const second = facts('', {}, [
      tensor('blk.1.ffn_down_exps.weight', 300),
      tensor('blk.1.ffn_gate.3.weight', 50),
      tensor('output_norm.weight', 4),
      tensor('output.weight', 900),
    ]);
    const g = geometry(first, second);
    expect(g.blocks.map((b) => [b.alwaysBytes, b.expertBytes])).toEqual([
      [45, 400],
      [0, 350],
    ]);
    expect(g).toMatchObject({
      tokenEmbeddingBytes: 1000,
      outputBytes: 900,
      otherBytes: 4,
      tiedOutput: false,
    });
    expect(g).toMatchObject({
      expertCount: 8,
      expertUsedCount: 2,
      vocabularyTokens: 7,
      embeddingLength: 512,
    });
  });

  test('experts are known by their shape too, and a count of them without any is a dense file', () => {
    const header = { ...HEADS, block_count: 1, expert_count: 8, expert_used_count: 2 };
    const own = (...tensors: readonly TensorFact[]) =>
      geometry(facts('qwen3moe', header, [tensor('blk.0.attn_k.weight', 10), ...tensors])).blocks[0];
    expect(own(tensor('blk.0.mixer.weight', 400, [512, 64, 8]))).toMatchObject({
      alwaysBytes: 10,
      expertBytes: 400,
    });
    // Another number of slices, and a table of two dimensions, are none.
    expect(
      own(tensor('blk.0.conv.weight', 30, [512, 64, 4]), tensor('blk.0.ffn_gate_inp.weight', 5, [512, 8])),
    ).toMatchObject({ alwaysBytes: 45, expertBytes: 0 });
  });

  test('without an output of its own it is tied; an encoder has none', () => {
    const own = [tensor('token_embd.weight')];
    expect(geometry(facts('llama', { block_count: 0 }, own)).tiedOutput).toBe(true);
    expect(geometry(facts('bert', { block_count: 0 }, own)).tiedOutput).toBe(false);
  });
});

describe('what a block keeps', () => {
  test('grouped heads, with lengths from the keys or from the width', () => {
    const plain = geometry(facts('llama', { ...HEADS, block_count: 1 }, attention(1)));
    expect(plain.blocks[0]?.cache).toEqual({ kind: 'attention', kvHeads: 2, keyLength: 64, valueLength: 64 });
    const said = { 'attention.key_length': 128, 'attention.value_length': 96 };
    const named = geometry(facts('llama', { ...HEADS, ...said, block_count: 1 }, attention(1)));
    expect(named.blocks[0]?.cache).toMatchObject({ keyLength: 128, valueLength: 96 });
  });

  test('heads that differ by block', () => {
    const keys = { ...HEADS, 'attention.head_count_kv': [4, 0, 1], block_count: 3 };
    const g = geometry(facts('decilm', keys, attention(3)));
    expect(g.blocks.map((b) => (b.cache.kind === 'attention' ? b.cache.kvHeads : -1))).toEqual([4, 0, 1]);
  });

  test.each([
    ['gemma3', 6, [0, 0, 0, 0, 0, 1]],
    ['gpt-oss', 4, [0, 1, 0, 1]],
    ['smallthinker', 4, [1, 0, 0, 0]],
    ['phi3', 2, [1, 1]],
  ])('%s alternates windows and full attention as its architecture fixes it', (name, blocks, full) => {
    const keys = { ...HEADS, 'attention.sliding_window': 1024, block_count: blocks };
    const g = geometry(facts(name, keys, attention(blocks)));
    expect(kinds(g)).toEqual(full.map((f) => (f === 1 ? 'attention' : 'window')));
  });

  test('a pattern in the file wins, as a period or block by block', () => {
    const keys = { ...HEADS, 'attention.sliding_window': 512, block_count: 3 };
    const period = { ...keys, 'attention.sliding_window_pattern': 3 };
    expect(kinds(geometry(facts('gemma3', period, attention(3))))).toEqual(['window', 'window', 'attention']);
    const each = {
      ...keys,
      'attention.sliding_window_pattern': [false, true, true],
      'attention.key_length_swa': 32,
    };
    const g = geometry(facts('gemma4', each, attention(3)));
    expect(kinds(g)).toEqual(['attention', 'window', 'window']);
    expect(g.blocks[1]?.cache).toMatchObject({ keyLength: 32, windowTokens: 512 });
  });

  test('a compressed cache, only where the file was made for it', () => {
    const keys = { ...HEADS, 'attention.kv_lora_rank': 512, 'rope.dimension_count': 64, block_count: 1 };
    const now = geometry(facts('deepseek2', keys, [tensor('blk.0.attn_k_b.weight')]));
    expect(now.blocks[0]?.cache).toEqual({ kind: 'mla', kvLoraRank: 512, ropeDims: 64 });
    expect(kinds(geometry(facts('deepseek2', keys, [tensor('blk.0.attn_kv_b.weight')])))).toEqual([
      'attention',
    ]);
  });

  test('a hybrid keeps a state of fixed size in its recurrent blocks', () => {
    const ssm = {
      'ssm.conv_kernel': 4,
      'ssm.inner_size': 4096,
      'ssm.group_count': 16,
      'ssm.state_size': 128,
    };
    const g = geometry(
      facts('qwen3next', { ...HEADS, ...ssm, block_count: 2 }, [
        tensor('blk.0.ssm_conv1d.weight'),
        tensor('blk.0.attn_qkv.weight'),
        tensor('blk.1.attn_k.weight'),
      ]),
    );
    expect(g.blocks.map((b) => b.cache)).toEqual([
      { kind: 'recurrent', convKernel: 4, innerSize: 4096, groups: 16, stateSize: 128 },
      { kind: 'attention', kvHeads: 2, keyLength: 64, valueLength: 64 },
    ]);
  });

  test('encoders, shared caches and blocks that only predict ahead keep nothing', () => {
    const kvHeads = (g: Geometry) => g.blocks.map((b) => ('kvHeads' in b.cache ? b.cache.kvHeads : -1));
    const three = { ...HEADS, block_count: 3 };
    expect(kvHeads(geometry(facts('bert', three, attention(3))))).toEqual([0, 0, 0]);
    const shared = { ...three, 'attention.shared_kv_layers': 2 };
    expect(kvHeads(geometry(facts('gemma4', shared, attention(3))))).toEqual([2, 0, 0]);
    const ahead = { ...three, nextn_predict_layers: 1 };
    expect(kvHeads(geometry(facts('glm4moe', ahead, attention(3))))).toEqual([2, 2, 0]);
  });
});

describe('what a model is for', () => {
  test.each([
    ['llama', {}, 'chat'],
    ['qwen3', { pooling_type: 3 }, 'embedding'],
    ['qwen3', { pooling_type: 4 }, 'rerank'],
    ['qwen3', { pooling_type: 0 }, 'chat'],
    ['bert', { pooling_type: 1 }, 'embedding'],
    ['nomic-bert', {}, 'embedding'],
    ['bert', { pooling_type: 4 }, 'rerank'],
  ])('%s with %j is %s', (architecture, keys, kind) => {
    expect(geometry(facts(architecture, { ...keys, block_count: 1 }, attention(1))).kind).toBe(kind);
  });
});

describe('a header that cannot be right', () => {
  test.each([
    ['', {}, 'names no architecture'],
    ['llama', {}, 'no llama.block_count'],
    ['llama', { block_count: 1e9 }, 'claims 1000000000 blocks'],
  ])('%s %j is broken: %s', (architecture, keys, words) => {
    expect(geometryOf([facts(architecture, keys, [tensor('x')])])).toEqual({
      broken: expect.stringContaining(words) as string,
    });
  });

  const parsed = (shape: readonly number[], offset: number, type = 0) => ({
    values: {},
    tensors: [
      { name: 'a', shape, type, offset: 0 },
      { name: 'b', shape: [4], type: 0, offset },
    ],
    dataStart: 32,
  });

  test('a tensor that ends beyond the file, or reaches into the next, is told with its figures', () => {
    expect(factsOf(parsed([8], 32), 80).broken).toBeUndefined();
    expect(factsOf(parsed([8], 32), 79).broken).toBe(
      'the file ends too early: tensor b ends at byte 80, the file has 79',
    );
    expect(factsOf(parsed([9], 32), 80).broken).toBe('tensor a (36 bytes) reaches into b');
    expect(factsOf(parsed([2 ** 32, 2 ** 32], 32), 80).broken).toContain('impossible size');
  });

  test('of a storage type that is not known, the distance to the next tensor counts', () => {
    expect(factsOf(parsed([64], 32, 99), 80).tensors[0]?.bytes).toBe(32);
  });
});

test('bytes of block types', () => {
  expect(storedBytes(8, 64)).toBe(68);
  expect(storedBytes(12, 256)).toBe(144);
  expect(storedBytes(99, 1)).toBeUndefined();
});
