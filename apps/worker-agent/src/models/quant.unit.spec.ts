import { describe, expect, test } from 'vitest';
import { qualityRank, readName } from './quant.js';

describe('a file name', () => {
  test.each([
    ['Qwen3-8B-Q4_K_M.gguf', 'Qwen3-8B', 'Q4_K_M'],
    ['Qwen3-30B-A3B-UD-Q4_K_XL.gguf', 'Qwen3-30B-A3B', 'UD-Q4_K_XL'],
    ['mistral-7b-instruct-v0.2.Q5_K_S.gguf', 'mistral-7b-instruct-v0.2', 'Q5_K_S'],
    ['model-BF16.gguf', 'model', 'BF16'],
    ['model.fp16.gguf', 'model', 'F16'],
    ['m-q8_0.GGUF', 'm', 'Q8_0'],
    ['m-IQ2_XXS.gguf', 'm', 'IQ2_XXS'],
    ['m-IQ4_NL.gguf', 'm', 'IQ4_NL'],
    ['m-Q6_K.gguf', 'm', 'Q6_K'],
    ['m-Q3_K_L.gguf', 'm', 'Q3_K_L'],
    ['gpt-oss-20b-MXFP4.gguf', 'gpt-oss-20b', 'MXFP4'],
    ['m-Q4_0_4_4.gguf', 'm', 'Q4_0_4_4'],
    ['m-TQ1_0.gguf', 'm', 'TQ1_0'],
    ['plain.gguf', 'plain', undefined],
    ['F16-fighter.gguf', '-fighter', 'F16'],
  ])('%s is %s with quant %s', (name, base, label) => {
    const read = readName(name);
    expect([read.base, read.label]).toEqual([base, label]);
  });

  test('a shard says its place', () => {
    expect(readName('m-Q8_0-00002-of-00005.gguf')).toEqual({
      base: 'm',
      label: 'Q8_0',
      shard: { index: 2, count: 5 },
    });
  });
});

test('quants are ranked below full precision, best first, and the unknown last', () => {
  const best = [
    'F32',
    'BF16',
    'F16',
    'Q8_0',
    'Q6_K',
    'UD-Q5_K_XL',
    'Q4_K_M',
    'IQ4_XS',
    'Q3_K_M',
    'Q2_K',
    'strange',
  ];
  const shuffled = [...best].reverse().sort((a, b) => qualityRank(a) - qualityRank(b));
  expect(shuffled).toEqual(best);
});
