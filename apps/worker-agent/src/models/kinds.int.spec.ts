import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { FoundModel } from '#domain/events/index.js';
import { makeModel } from '../make-model/index.js';
import { encodeHeader, type HeaderValue } from '../make-model/gguf-writer.js';
import { DescribingReader } from './describing.js';
import { HeaderReader } from './header-reader.js';
import { ProcessHints } from './hints.js';
import type { ModelRoot } from './roots.js';
import { scan } from './scan.js';

let made: string;
let root: string;
beforeAll(async () => {
  made = await mkdtemp(join(tmpdir(), 'berth-made-'));
  await makeModel({ preset: 'chat-a', file: join(made, 'chat.gguf') });
});
afterAll(() => rm(made, { recursive: true, force: true }));
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-kinds-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(name: string, content: string | Uint8Array | object): Promise<string> {
  const file = join(root, name);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(
    file,
    typeof content === 'string' || content instanceof Uint8Array ? content : JSON.stringify(content),
  );
  return file;
}
const chat = async (name: string) => put(name, await readFile(join(made, 'chat.gguf')));

function gguf(values: Record<string, string | boolean | number>): Uint8Array {
  const typed = Object.fromEntries(
    Object.entries(values).map(([key, value]): [string, HeaderValue] => [
      key,
      typeof value === 'string'
        ? { text: value }
        : typeof value === 'boolean'
          ? { bool: value }
          : { u32: value },
    ]),
  );
  const tensor = { name: 'a.weight', shape: [4, 2], type: 'F32' as const, data: () => [] };
  return Buffer.concat([encodeHeader(typed, [tensor]), Buffer.alloc(32)]);
}

function safetensors(tensors: Record<string, number>, dtype = 'BF16'): Uint8Array {
  let at = 0;
  const header: Record<string, unknown> = {};
  for (const [name, bytes] of Object.entries(tensors)) {
    header[name] = { dtype, shape: [bytes / 2], data_offsets: [at, (at += bytes)] };
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, Buffer.alloc(at)]);
}

async function found(
  roots: readonly ModelRoot[] = [{ name: 'models', path: root }],
): Promise<Map<string, FoundModel>> {
  const headers = new HeaderReader();
  try {
    const readers = { headers, describing: new DescribingReader(), sidecars: join(root, '.markers') };
    const { models } = await scan(roots, readers, () => Date.now() + 60_000);
    return new Map(models.map(({ model }) => [model.modelKey, model]));
  } finally {
    await headers.close();
  }
}

const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  hidden_size: 16,
  max_position_embeddings: 2048,
};

describe('a folder of safetensors', () => {
  test('is one artifact with what its config, its tokenizer and its headers say', async () => {
    await put('o/r/config.json', { ...LLAMA, quantization_config: { quant_method: 'gptq', bits: 4 } });
    await put('o/r/tokenizer.json', '{}');
    await put('o/r/tokenizer_config.json', { chat_template: '{{ tools }}' });
    await put(
      'o/r/model-00001-of-00002.safetensors',
      safetensors({ 'model.layers.0.mlp.up_proj.weight': 8 }),
    );
    await put('o/r/model-00002-of-00002.safetensors', safetensors({ 'lm_head.weight': 6 }));
    const model = (await found()).get('o/r');
    expect(model).toMatchObject({
      framework: 'safetensors',
      kind: 'chat',
      abilities: ['tools'],
      trainedContextTokens: 2048,
      marker: { source: 'derived' },
    });
    expect(model?.artifacts).toHaveLength(1);
    expect(model?.artifacts[0]).toMatchObject({ label: 'GPTQ-4BIT', format: 'safetensors', complete: true });
    expect(model?.artifacts[0]?.geometry).toMatchObject({
      architecture: 'llama',
      outputBytes: 6,
      tiedOutput: false,
    });
  });

  test('that lacks a shard, its config or its tokenizer is listed with what lacks', async () => {
    await put('o/a/config.json', LLAMA);
    await put('o/a/model-00001-of-00003.safetensors', safetensors({ a: 4 }));
    await put('o/b/model.safetensors', safetensors({ a: 4 }));
    await put('o/c/config.json', LLAMA);
    await put('o/c/tokenizer.json', '{}');
    await put('o/c/model.safetensors.index.json', {
      weight_map: { a: 'one.safetensors', b: 'two.safetensors' },
    });
    await put('o/c/one.safetensors', safetensors({ a: 4 }));
    const models = await found();
    const lacks = (key: string) => models.get(key)?.artifacts.map((a) => [a.complete, a.missing]);
    expect(lacks('o/a')).toEqual([
      [false, ['model-00002-of-00003.safetensors', 'model-00003-of-00003.safetensors', 'tokenizer.json']],
    ]);
    expect(lacks('o/b')).toEqual([[false, ['config.json', 'tokenizer.json']]]);
    expect(lacks('o/c')).toEqual([[false, ['two.safetensors']]]);
  });

  test('of a pipeline is an image model with all its parts, whatever its folder is called', async () => {
    await put('sdxl/model_index.json', { _class_name: 'StableDiffusionXLPipeline' });
    await put('sdxl/unet/config.json', {});
    await put('sdxl/unet/diffusion_pytorch_model.safetensors', safetensors({ a: 8 }, 'F16'));
    await put('sdxl/vae/diffusion_pytorch_model.safetensors', safetensors({ a: 4 }, 'F16'));
    await put('sdxl/sdxl.safetensors', safetensors({ a: 12 }, 'F16'));
    const models = await found();
    expect([...models.keys()]).toEqual(['sdxl']);
    expect(models.get('sdxl')).toMatchObject({ kind: 'image', framework: 'safetensors' });
    expect(models.get('sdxl')?.artifacts.map((a) => [a.label, a.files.length, a.complete])).toEqual([
      ['F16', 2, true],
    ]);
  });

  test('cut short is broken in words, and comes after what is whole', async () => {
    await put('o/r/config.json', LLAMA);
    await put('o/r/tokenizer.json', '{}');
    await put('o/r/model.safetensors', Buffer.from(safetensors({ a: 400 })).subarray(0, 200));
    await chat('o/r/m-Q4_0.gguf');
    const artifacts = (await found()).get('o/r')?.artifacts;
    expect(artifacts?.map((a) => a.label)).toEqual(['Q4_0', 'BF16']);
    expect(artifacts?.[1]?.broken).toMatch(/ends too early/);
  });
});

test('pickled weights are listed, and why they are never offered', async () => {
  await put('o/r/config.json', LLAMA);
  await put('o/r/pytorch_model.bin', 'x');
  await put('o/r/optimizer.pt', 'x');
  await put('o/r/training_args.bin', 'x');
  const model = (await found()).get('o/r');
  expect(model?.framework).toBe('pickle');
  expect(model?.artifacts[0]?.files).toEqual([{ name: 'pytorch_model.bin', bytes: 1 }]);
  expect(model?.artifacts[0]?.broken).toMatch(/pickled.*never loaded.*safetensors or GGUF/);
});

describe('what goes with a model', () => {
  test('a projector beside it gives it sight, and is attached', async () => {
    await chat('o/r/m-F16.gguf');
    await put(
      'o/r/mmproj-F16.gguf',
      gguf({ 'general.architecture': 'clip', 'clip.has_vision_encoder': true }),
    );
    const model = (await found()).get('o/r');
    expect(model?.abilities).toContain('vision');
    expect(model?.attachments).toMatchObject([
      { role: 'projector', label: 'mmproj-F16', files: [{ name: 'mmproj-F16.gguf' }] },
    ]);
    expect(model?.artifacts.map((a) => a.label)).toEqual(['F16']);
  });

  test('an adapter is attached to the base that it names, wherever that lies', async () => {
    await chat('quay/ship-GGUF/ship-F16.gguf');
    await put(
      'loras/salt/salt.gguf',
      gguf({
        'general.type': 'adapter',
        'general.architecture': 'llama',
        'general.base_model.0.repo_url': 'https://huggingface.co/quay/ship',
      }),
    );
    const models = await found();
    expect([...models.keys()]).toEqual(['quay/ship-GGUF']);
    expect(models.get('quay/ship-GGUF')?.attachments).toEqual([
      expect.objectContaining({
        role: 'adapter',
        label: 'salt',
        parameters: 8,
        at: { root: 'models', path: 'loras/salt' },
      }),
    ]);
  });

  test('an adapter of PEFT names its base in its config; without the base it is listed with the reason', async () => {
    await put('loras/salt/adapter_config.json', { base_model_name_or_path: 'quay/ship', peft_type: 'LORA' });
    await put('loras/salt/adapter_model.safetensors', safetensors({ a: 8 }));
    expect((await found()).get('loras/salt')?.artifacts[0]?.broken).toBe(
      'it is an adapter for quay/ship, which is not on this machine',
    );
    await chat('quay/ship/ship-F16.gguf');
    expect((await found()).get('quay/ship')?.attachments?.[0]).toMatchObject({
      label: 'loras/salt',
      parameters: 4,
    });
  });
});

describe('paths that running programs name', () => {
  async function proc(pid: number, argv: readonly string[]): Promise<void> {
    await put(`proc/${pid}/cmdline`, `${argv.join('\0')}\0`);
  }

  test('are looked at when they are on the disk, the named file alone, and remembered until it is gone', async () => {
    const file = await chat('far/away/ship-Q8_0.gguf');
    await chat('far/away/other-F16.gguf');
    const eye = await put('far/away/eye.gguf', gguf({ 'general.architecture': 'clip' }));
    await proc(7, ['/opt/llama-server', '-m', file, '--mmproj', eye]);
    await proc(8, ['llama-server', '-m', join(root, 'not-there.gguf')]);
    const memory = join(root, 'cache/hints.json');
    const hints = new ProcessHints(memory, join(root, 'proc'));
    const roots = await hints.roots([]);
    const models = await found(roots);
    expect([...models.keys()]).toEqual(['ship']);
    expect(models.get('ship')).toMatchObject({ root: 'process', path: 'away' });
    expect(models.get('ship')?.attachments?.map((a) => a.role)).toEqual(['projector']);

    await rm(join(root, 'proc'), { recursive: true });
    const later = new ProcessHints(memory, join(root, 'proc'));
    expect(await later.roots([])).toEqual(roots);
    await rm(file);
    expect(await later.roots([])).toEqual([]);
  });

  test('below a root that is scanned anyway are no roots of their own', async () => {
    await proc(7, ['llama-server', '-m', await chat('models/o/r/m.gguf')]);
    const hints = new ProcessHints(undefined, join(root, 'proc'));
    expect(await hints.roots([{ name: 'models', path: join(root, 'models') }])).toEqual([]);
  });
});
