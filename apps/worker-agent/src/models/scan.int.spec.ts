import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { damage, DAMAGES, makeModel, type Preset } from '../make-model/index.js';
import { HeaderReader } from './header-reader.js';
import { modelRoots, type ModelRoot } from './roots.js';
import { scan } from './scan.js';
import { FolderBudget, walk } from './walk.js';

let made: string;
let root: string;
const sources = new Map<Preset, string>();

beforeAll(async () => {
  made = await mkdtemp(join(tmpdir(), 'berth-made-'));
  for (const preset of ['chat-a', 'chat-b', 'moe', 'embed', 'rerank', 'smoke'] as const) {
    sources.set(preset, (await makeModel({ preset, file: join(made, `${preset}.gguf`) })).file);
  }
});
afterAll(() => rm(made, { recursive: true, force: true }));
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-scan-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(preset: Preset, name: string): Promise<string> {
  const file = join(root, name);
  await mkdir(dirname(file), { recursive: true });
  await copyFile(sources.get(preset) ?? '', file);
  return file;
}

/** A file changed long enough ago to be taken as it is. */
const later = () => Date.now() + 60_000;

async function scanned(roots: readonly ModelRoot[] = [{ name: 'models', path: root }]) {
  const reader = new HeaderReader();
  try {
    return (await scan(roots, reader, later)).models;
  } finally {
    await reader.close();
  }
}

describe('the models folder', () => {
  test('is read as owner and repository, as a folder of one name, and as bare files', async () => {
    await put('chat-a', 'acme/ship-GGUF/ship-F16.gguf');
    await put('chat-b', 'acme/ship-GGUF/low/ship-Q8_0.gguf');
    await put('moe', 'solo/any.gguf');
    await put('embed', 'words-F16.gguf');
    await put('rerank', 'words-F32.gguf');
    const models = await scanned();
    expect(models.map((m) => [m.model.modelKey, m.model.path, m.model.kind])).toEqual([
      ['acme/ship-GGUF', 'acme/ship-GGUF', 'chat'],
      ['solo', 'solo', 'chat'],
      ['words', '.', 'rerank'],
    ]);
    expect(models[0]?.model.artifacts.map((a) => [a.label, a.files[0]?.name])).toEqual([
      ['F16', 'ship-F16.gguf'],
      ['Q8_0', 'low/ship-Q8_0.gguf'],
    ]);
    expect(models[0]?.files.get('Q8_0')).toEqual([join(root, 'acme/ship-GGUF/low/ship-Q8_0.gguf')]);
    // The name of the file says nothing, so its header does.
    expect(models[1]?.model.artifacts[0]?.label).toBe('F16');
  });

  test('names no model by what cannot be typed, and finds its files all the same', async () => {
    const file = await put('chat-a', 'acme/new\nline\u0007/ship-F16.gguf');
    const [found] = await scanned();
    expect(found?.model).toMatchObject({ modelKey: 'acme/new_line_', path: 'acme/new\nline\u0007' });
    expect(found?.files.get('F16')).toEqual([file]);
  });

  test.skipIf(process.platform === 'win32')(
    'opens nothing that is no file: a pipe, a device, a folder',
    async () => {
      await put('chat-a', 'acme/ship/ship-F16.gguf');
      for (const name of ['pipe-F16.gguf', 'config.json', 'berth.json'])
        execFileSync('mkfifo', [join(root, 'acme/ship', name)]);
      await symlink('/dev/zero', join(root, 'acme/ship/endless-F16.gguf'));
      await mkdir(join(root, 'acme/ship/folder-F16.gguf'));
      await mkdir(join(root, 'acme/other/config.json'), { recursive: true });
      await symlink('..', join(root, 'acme/ship/up'));
      const models = await scanned();
      expect(models.map(({ model }) => [model.modelKey, model.artifacts.map((a) => a.files.length)])).toEqual(
        [['acme/ship', [1]]],
      );
    },
  );

  test('gives the geometry of what it finds, to the byte', async () => {
    const file = await put('moe', 'm/moe.gguf');
    const [artifact] = (await scanned())[0]?.model.artifacts ?? [];
    const g = artifact?.geometry;
    expect(g).toMatchObject({ architecture: 'qwen3moe', kind: 'chat', trainedContextTokens: 8192 });
    expect(g).toMatchObject({ expertCount: 16, expertUsedCount: 4, hasChatTemplate: true });
    expect(g?.blocks).toHaveLength(4);
    // Three matrices of 64 x 64 halves for each of the 16 experts.
    expect(g?.blocks[0]?.expertBytes).toBe(3 * 64 * 64 * 2 * 16);
    const blocks = g?.blocks.reduce((total, b) => total + b.alwaysBytes + b.expertBytes, 0) ?? 0;
    const weights = blocks + g!.tokenEmbeddingBytes + g!.outputBytes + g!.otherBytes;
    const bytes = (await readFile(file)).length;
    expect(weights).toBeLessThan(bytes);
    expect(bytes - weights).toBeLessThan(40_000);
  });

  test('marks the smoke model', async () => {
    await put('smoke', 'berth/smoke/smoke-F16.gguf');
    expect((await scanned())[0]?.model.smoke).toBe(true);
  });

  test('folds shards into one artifact, and lists an incomplete set as such', async () => {
    await put('chat-a', 'o/r/m-F16-00001-of-00002.gguf');
    const second = await put('chat-b', 'o/r/m-F16-00002-of-00002.gguf');
    const whole = (await scanned())[0];
    expect(whole?.model.artifacts).toHaveLength(1);
    expect(whole?.model.artifacts[0]).toMatchObject({ label: 'F16', complete: true });
    expect(whole?.files.get('F16')).toHaveLength(2);
    await rm(second);
    expect((await scanned())[0]?.model.artifacts[0]).toMatchObject({ label: 'F16', complete: false });
  });

  test('leaves out hidden names, parts of downloads, projectors, and what lies too deep', async () => {
    await put('chat-a', 'o/.cache/m.gguf');
    await put('chat-a', '.hidden/m.gguf');
    await put('chat-a', 'o/r/m.gguf.part');
    await put('chat-a', 'o/r/mmproj-F16.gguf');
    // The root is the first level, and this lies in the sixth.
    await put('chat-a', 'a/b/c/d/e/m.gguf');
    expect(await scanned()).toEqual([]);
    await put('chat-a', 'a/b/c/d/m.gguf');
    expect((await scanned()).map((m) => m.model.modelKey)).toEqual(['a/b']);
  });

  test('opens 4,096 folders and no more, and says that there are others', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await put('chat-a', `${name}/m.gguf`);
    const budget = new FolderBudget();
    for (let i = 0; i < 4093; i += 1) budget.take(`/elsewhere/${i}`);
    const files = await walk(root, budget);
    expect([budget.opened.length, budget.cut]).toEqual([4096, true]);
    expect(files.map(({ relative }) => relative)).toEqual(['a/m.gguf', 'b/m.gguf']);
    const whole = new FolderBudget();
    expect([await walk(root, whole), whole.cut]).toMatchObject([{ length: 4 }, false]);
  });

  test('follows a link within the root, and none that leaves it', async () => {
    const file = await put('chat-a', 'o/r/m-F16.gguf');
    await mkdir(join(root, 'other'));
    await symlink(file, join(root, 'other/n.gguf'));
    await symlink(sources.get('chat-b') ?? '', join(root, 'other/outside.gguf'));
    await symlink(made, join(root, 'elsewhere'));
    await symlink(root, join(root, 'o/loop'));
    const models = await scanned();
    expect(models.find((m) => m.model.modelKey === 'other')?.model.artifacts).toHaveLength(1);
    expect(models.map((m) => m.model.modelKey)).toEqual(['o/r', 'other']);
  });

  test('two files of one quant are told apart by their names', async () => {
    await put('chat-a', 'o/r/one-F16.gguf');
    await put('chat-b', 'o/r/two-F16.gguf');
    const [model] = await scanned();
    expect(model?.model.artifacts.map((a) => a.label).sort()).toEqual(['one-F16', 'two-F16']);
  });
});

describe('spoilt files', () => {
  test('each is listed as broken in words, and takes nothing else down', async () => {
    for (const kind of DAMAGES) await damage(await put('chat-a', `${kind}/m.gguf`), kind);
    await put('chat-b', 'sound/m.gguf');
    const found = new Map((await scanned()).map((m) => [m.model.modelKey as string, m.model.artifacts[0]]));
    expect(found.get('sound')).toMatchObject({ complete: true, label: 'F16' });
    expect(found.get('sound')?.broken).toBeUndefined();
    const words = (kind: string) => found.get(kind)?.broken;
    expect(words('truncated')).toMatch(/ends too early: tensor .* ends at byte \d+, the file has \d+/);
    expect(words('header-cut')).toMatch(/header|too early/);
    expect(words('bad-magic')).toContain('no GGUF');
    expect(words('bad-version')).toContain('header');
    expect(words('wrong-tensor-size')).toMatch(/ends too early|reaches into/);
    expect(words('garbage')).toContain('header');
    expect(words('empty')).toBe('the file is empty');
    // Only the engine finds that one.
    expect(words('aborts')).toBeUndefined();
  });

  test('a sound artifact comes before a broken one of higher precision', async () => {
    await put('chat-a', 'o/r/m-Q8_0.gguf');
    await damage(await put('chat-a', 'o/r/m-F16.gguf'), 'truncated');
    expect((await scanned())[0]?.model.artifacts.map((a) => a.label)).toEqual(['Q8_0', 'F16']);
  });

  test('headers of random bytes are refused without hanging', async () => {
    const count = 24;
    for (let i = 0; i < count; i++) {
      const bytes = Buffer.from(await readFile(sources.get('chat-a') ?? ''));
      let x = i + 1;
      for (let n = 0; n < 40; n++) {
        x = (Math.imul(x, 1103515245) + 12345) >>> 0;
        bytes[8 + (x % 12_000)] = (x >>> 16) & 0xff;
      }
      await mkdir(join(root, `fuzz${i}`));
      await writeFile(join(root, `fuzz${i}/m.gguf`), bytes);
    }
    await put('chat-b', 'sound/m.gguf');
    const models = await scanned();
    expect(models).toHaveLength(count + 1);
    expect(models.find((m) => m.model.modelKey === 'sound')?.model.artifacts[0]?.broken).toBeUndefined();
  });

  test('a broken file that was changed a moment ago is still being written', async () => {
    const file = await put('chat-a', 'o/r/m.gguf');
    await truncate(file, 100_000);
    const { mtimeMs } = await stat(file);
    const reader = new HeaderReader();
    const settling = async (afterMs: number) =>
      (await scan([{ name: 'models', path: root }], reader, () => mtimeMs + afterMs)).models[0]?.settling;
    expect(await settling(500)).toBe(true);
    expect(await settling(1500)).toBe(false);
    await reader.close();
  });
});

describe('the stores of other programs', () => {
  test('the Hugging Face cache: the revision that main names, through its links', async () => {
    const repo = join(root, 'models--acme--ship-GGUF');
    await put('chat-a', 'models--acme--ship-GGUF/blobs/aaaa');
    await put('chat-b', 'models--acme--ship-GGUF/blobs/bbbb');
    for (const [revision, blob] of [
      ['rev1', 'aaaa'],
      ['rev2', 'bbbb'],
    ] as const) {
      await mkdir(join(repo, 'snapshots', revision), { recursive: true });
      await symlink(join('..', '..', 'blobs', blob), join(repo, 'snapshots', revision, 'ship-F16.gguf'));
    }
    await mkdir(join(repo, 'refs'));
    await writeFile(join(repo, 'refs/main'), 'rev1');
    await put('chat-a', 'datasets--acme--x/snapshots/r/m.gguf');
    const models = await scanned([{ name: 'huggingface', path: root }]);
    expect(models.map((m) => [m.model.modelKey, m.model.root, m.model.path])).toEqual([
      ['acme/ship-GGUF', 'huggingface', 'models--acme--ship-GGUF/snapshots/rev1'],
    ]);
    expect(models[0]?.files.get('F16')).toEqual([join(repo, 'blobs/aaaa')]);
  });

  test("Ollama's store: manifests name blobs, its own names become aliases", async () => {
    const digest = `sha256-${'ab'.repeat(32)}`;
    await put('chat-a', `blobs/${digest}`);
    const manifest = JSON.stringify({
      layers: [
        { mediaType: 'application/vnd.ollama.image.template', digest: `sha256:${'cd'.repeat(32)}` },
        { mediaType: 'application/vnd.ollama.image.model', digest: digest.replace('-', ':') },
      ],
    });
    const library = join(root, 'manifests/registry.ollama.ai/library');
    await mkdir(join(library, 'ship'), { recursive: true });
    await writeFile(join(library, 'ship/8b'), manifest);
    await writeFile(join(library, 'ship/latest'), manifest);
    await writeFile(join(library, 'ship/broken'), '{"layers":');
    await writeFile(
      join(library, 'ship/evil'),
      manifest.replace(digest.replace('-', ':'), '../../../etc/passwd'),
    );
    const models = await scanned([{ name: 'ollama', path: root }]);
    expect(models.map((m) => [m.model.modelKey, m.model.aliases])).toEqual([
      ['ollama/ship-8b', ['ship:8b', 'ship:latest']],
    ]);
    expect(models[0]?.model.artifacts[0]).toMatchObject({ label: 'F16', complete: true });
  });

  test('the first root that has a key wins, and a root that is not there holds nothing', async () => {
    await put('chat-a', 'one/o/r/m-F16.gguf');
    await put('chat-b', 'two/o/r/m-Q8_0.gguf');
    const models = await scanned([
      { name: 'models', path: join(root, 'one') },
      { name: 'lm-studio', path: join(root, 'two') },
      { name: 'ollama', path: join(root, 'three') },
    ]);
    expect(models.map((m) => [m.model.root, m.model.artifacts[0]?.label])).toEqual([['models', 'F16']]);
  });

  test('what lies in LM Studio’s store alone is found there', async () => {
    await put('chat-b', 'studio/o/r/m-Q8_0.gguf');
    const models = await scanned(
      modelRoots(join(root, 'models'), { XDG_CACHE_HOME: root, HF_HOME: join(root, 'hf') }, root).map((r) =>
        r.name === 'lm-studio' ? { ...r, path: join(root, 'studio') } : { ...r, path: join(root, 'none') },
      ),
    );
    expect(models.map((m) => [m.model.modelKey, m.model.root])).toEqual([['o/r', 'lm-studio']]);
  });

  test('roots follow the environment of those programs', () => {
    const paths = (env: Record<string, string>) =>
      modelRoots('/m', env, '/home/u').map((r) => `${r.name} ${r.path}`);
    expect(paths({})).toEqual([
      'models /m',
      'huggingface /home/u/.cache/huggingface/hub',
      'lm-studio /home/u/.lmstudio/models',
      'lm-studio /home/u/.cache/lm-studio/models',
      'ollama /home/u/.ollama/models',
      'ollama /usr/share/ollama/.ollama/models',
      'ollama /var/lib/ollama/.ollama/models',
    ]);
    expect(paths({ HF_HOME: '/hf', OLLAMA_MODELS: '/o', XDG_CACHE_HOME: '/x' })).toEqual([
      'models /m',
      'huggingface /hf/hub',
      'lm-studio /home/u/.lmstudio/models',
      'lm-studio /x/lm-studio/models',
      'ollama /o',
    ]);
    expect(paths({ HF_HOME: '/hf', HF_HUB_CACHE: '/hub' })[1]).toBe('huggingface /hub');
  });
});

test('an unchanged file is not opened again, a changed one is', async () => {
  const reader = new HeaderReader();
  const roots: readonly ModelRoot[] = [{ name: 'models', path: root }];
  try {
    await put('chat-a', 'a/m.gguf');
    const file = await put('chat-b', 'b/m.gguf');
    await scan(roots, reader, later);
    await scan(roots, reader, later);
    expect(reader.reads).toBe(2);
    await damage(file, 'truncated');
    const { models } = await scan(roots, reader, later);
    expect(reader.reads).toBe(3);
    expect(models[1]?.model.artifacts[0]?.broken).toContain('too early');
  } finally {
    await reader.close();
  }
});

test('headers are remembered over a restart; a damaged memory is set aside', async () => {
  const file = join(root, '.cache/headers.json');
  const roots: readonly ModelRoot[] = [{ name: 'models', path: root }];
  const readsOfOneRun = async () => {
    const reader = new HeaderReader(file);
    const { models } = await scan(roots, reader, later);
    await reader.save();
    await reader.close();
    expect(models[0]?.model.artifacts[0]?.geometry?.blocks).toHaveLength(2);
    return reader.reads;
  };
  await put('chat-a', 'a/m.gguf');
  expect(await readsOfOneRun()).toBe(1);
  expect(await readsOfOneRun()).toBe(0);
  for (const damaged of ['{"version":1,"files":{', '[]', '{"version":0,"files":{"x":3}}']) {
    await writeFile(file, damaged);
    expect(await readsOfOneRun()).toBe(1);
  }
});
