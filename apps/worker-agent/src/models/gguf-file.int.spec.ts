import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gguf } from '@huggingface/gguf';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeModel, PRESETS } from '../make-model/index.js';
import type { FileFacts } from './file-facts.js';
import { readGguf } from './gguf-file.js';
import { headerBytes, sampleHeader } from './gguf-samples.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-gguf-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What another reader of the format makes of the file, in the shape of ours. */
async function elsewhere(file: string) {
  const { metadata, tensorInfos } = await gguf(file, { allowLocalFile: true });
  const { version: _version, tensor_count: _tensors, kv_count: _pairs, ...pairs } = metadata;
  const values = Object.entries(pairs as Record<string, unknown>).map(([key, value]) => {
    if (!Array.isArray(value)) return [key, scalar(value)];
    const items: readonly unknown[] = value;
    const whole = !key.startsWith('tokenizer.') && items.length <= 1024 && !items.some(Array.isArray);
    return [key, whole ? items.map(scalar) : { length: items.length }];
  });
  return {
    values: Object.fromEntries(values) as Record<string, unknown>,
    shapes: Object.fromEntries(tensorInfos.map(({ name, shape }) => [name, shape.map(Number)])),
  };
}
const scalar = (value: unknown) =>
  typeof value === 'bigint' ? Number(value) : typeof value === 'string' ? value.slice(0, 256) : value;

const shapesOf = ({ tensors }: FileFacts) =>
  Object.fromEntries(tensors.map(({ name, shape }) => [name, shape]));

test.each(PRESETS)('the header of a made model (%s) says the same to another reader', async (preset) => {
  const { file } = await makeModel({
    preset,
    file: join(folder, `${preset}.gguf`),
    ...(preset === 'big' ? { sizeMb: 4 } : {}),
  });
  const facts = await readGguf(file, (await stat(file)).size);
  const other = await elsewhere(file);
  expect(facts.broken).toBeUndefined();
  expect(facts.values).toEqual(other.values);
  expect(shapesOf(facts)).toEqual(other.shapes);
});

test('any sound header says the same to another reader', async () => {
  const file = join(folder, 'sample.gguf');
  const own = ['version', 'tensor_count', 'kv_count'];
  await fc.assert(
    fc.asyncProperty(sampleHeader, async (sample) => {
      // The other reader keeps facts of its own under these names, and takes an empty list in a list for a flat one.
      fc.pre(
        sample.pairs.every(
          ([key, value]) =>
            !own.includes(key) && (value.type !== 9 || value.of !== 9 || value.value.length > 0),
        ),
      );
      const bytes = headerBytes(sample);
      await writeFile(file, Buffer.concat([bytes, Buffer.alloc(64)]));
      const facts = await readGguf(file, bytes.length + 64);
      const other = await elsewhere(file);
      expect(facts.values).toEqual(other.values);
      expect(shapesOf(facts)).toEqual(other.shapes);
    }),
    { numRuns: 60 },
  );
});

test('a header of many megabytes is read in steps', async () => {
  const file = join(folder, 'large.gguf');
  const tokens = Array.from({ length: 200_000 }, (_, i) => ({
    type: 8 as const,
    value: `token number ${i}`,
  }));
  const bytes = headerBytes({
    pairs: [
      ['tokenizer.ggml.tokens', { type: 9, of: 8, value: tokens }],
      ['tokenizer.chat_template', { type: 8, value: 'x'.repeat(3_000_000) }],
      ['general.architecture', { type: 8, value: 'llama' }],
    ],
    tensors: [],
  });
  await writeFile(file, Buffer.concat([bytes, Buffer.alloc(32)]));
  const facts = await readGguf(file, bytes.length + 32);
  expect(facts.values).toMatchObject({
    'tokenizer.ggml.tokens': { length: 200_000 },
    'general.architecture': 'llama',
  });
  expect(facts.broken).toBeUndefined();
});

test('a file that became shorter since it was found is broken, and no one waits', async () => {
  const file = join(folder, 'shrunk.gguf');
  const bytes = headerBytes({ pairs: [['k', { type: 8, value: 'x'.repeat(1000) }]], tensors: [] });
  await writeFile(file, bytes.subarray(0, 500));
  expect((await readGguf(file, bytes.length)).broken).toMatch(/ends within its header|longer than any/);
});
