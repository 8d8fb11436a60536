import type * as Binding from 'node-llama-cpp';
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import { expect, it, vi } from 'vitest';
import { contextOptions, openLlama } from './llama.js';

vi.mock('node-llama-cpp', async (original) => ({
  ...(await original<typeof Binding>()),
  getLlama: vi.fn(() => Promise.resolve({})),
}));

it('takes the prebuilt library, never compiles or fetches one, and names the threads', async () => {
  await openLlama(3, () => undefined);
  expect(vi.mocked(getLlama).mock.lastCall).toEqual([
    expect.objectContaining({ build: 'never', skipDownload: true, gpu: false, maxThreads: 3 }),
  ]);
  expect(vi.mocked(getLlama).mock.lastCall?.[0]).toMatchObject({ logLevel: LlamaLogLevel.info });
});

it('gives a context the threads of its plan', () => {
  const plan = {
    modelPath: '/m.gguf',
    kind: 'chat' as const,
    contextTokens: 4096,
    microBatch: 512,
    threads: 5,
    slots: 1,
    kvType: 'f16' as const,
    flashAttention: true,
  };
  expect(contextOptions(plan, undefined)).toMatchObject({ threads: 5 });
});
