import { describe, expect, it } from 'vitest';
import { allocatedContextTokens, inputLimitTokens, slotsOf } from './plan.js';

describe('what a plan means to the engine', () => {
  it('allocates cache rows in steps of 256 tokens', () => {
    expect([1, 256, 257, 1000].map(allocatedContextTokens)).toEqual([256, 256, 512, 1024]);
  });

  it('limits an encoder to one input of one batch at a time', () => {
    const plan = { contextTokens: 8192, slots: 4, microBatch: 512 };
    expect(inputLimitTokens({ ...plan, kind: 'chat' })).toBe(8192);
    expect(inputLimitTokens({ ...plan, kind: 'embedding' })).toBe(512);
    expect(slotsOf({ ...plan, kind: 'chat' })).toBe(4);
    expect(slotsOf({ ...plan, kind: 'rerank' })).toBe(1);
  });
});
