import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';
import { damage, expectedText, makeModel, type MakeModelOptions } from './index.js';
import type { EngineJob, EngineSaid } from './real-engine.fixture.js';

const SCRIPT = join(packageRoot(), 'dist/apps/worker-agent/src/make-model/real-engine.fixture.js');
const MAIN = join(packageRoot(), 'dist/apps/worker-agent/src/make-model/main.js');
let folder: string;

let engine: ChildProcess;

function startEngine(): ChildProcess {
  return fork(SCRIPT, [], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Else an abort starts a debugger to print where it was.
    env: { ...process.env, GGML_NO_BACKTRACE: '1' },
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-make-'));
  engine = startEngine();
});
afterAll(async () => {
  const gone = once(engine, 'exit');
  engine.disconnect();
  await gone;
  await rm(folder, { recursive: true, force: true });
});

/** What a real engine says, or how its process ended instead. */
function ask(job: EngineJob, child: ChildProcess = engine): Promise<EngineSaid | { exit: string }> {
  return new Promise((resolve) => {
    const onExit = (code: number | null, signal: string | null) => {
      resolve({ exit: signal ?? String(code) });
    };
    child.once('exit', onExit);
    child.once('message', (said) => {
      child.off('exit', onExit);
      resolve(said as EngineSaid);
    });
    child.send(job);
  });
}

const make = (name: string, options: Omit<MakeModelOptions, 'file'>) =>
  makeModel({ ...options, file: join(folder, `${name}.gguf`) });
const sha256 = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex');

describe('a real engine loads every preset and says what was expected', () => {
  test.each(['chat-a', 'chat-b', 'hybrid', 'moe', 'smoke', 'think', 'windowed'] as const)(
    '%s',
    async (preset) => {
      const { file, expects } = await make(preset, { preset });
      const said = await ask({ ask: 'chat', file, maxTokens: 100 });
      expect(said).toEqual({ text: expects.text, reasoning: expects.reasoning ?? '', ended: true });
    },
  );

  test.each([2, 3, 11, 13, 17, 23])('a large one says its sentence with seed %i', async (seed) => {
    const { file, expects } = await make(`big-${seed}`, { preset: 'big', sizeMb: 20, seed });
    expect(await ask({ ask: 'chat', file, maxTokens: 100 })).toMatchObject({
      text: expects.text,
      ended: true,
    });
  });

  test('another seed says so, and two presets never say the same', async () => {
    const { file, expects } = await make('chat-a-7', { preset: 'chat-a', seed: 7 });
    const said = await ask({ ask: 'chat', file, maxTokens: 100 });
    expect(said).toMatchObject({ text: `${expectedText('chat-a').text} (seed 7)`, ended: true });
    expect(expects.text).not.toBe(expectedText('chat-b', 7).text);
  });

  test('a completion without a chat template is the same sentence, whatever the prompt', async () => {
    const { file, expects } = await make('raw', { preset: 'chat-b' });
    const said = await ask({ ask: 'completion', file, maxTokens: 100 });
    expect(said).toMatchObject({ text: expects.text, ended: true });
  });

  test('an endless model goes on until its tokens are used up', async () => {
    const { file, expects } = await make('endless', { preset: 'endless' });
    const said = await ask({ ask: 'chat', file, maxTokens: 30 });
    expect(said).toMatchObject({ ended: false });
    const text = 'text' in said ? said.text : '';
    expect((expects.text + expects.repeats! + expects.repeats!).startsWith(text)).toBe(true);
    expect(text.length).toBeGreaterThan(expects.text.length);
  });

  test('a large model has the size that was asked for, and answers', async () => {
    const { file, bytes, expects } = await make('big', { preset: 'big', sizeMb: 60 });
    expect(bytes).toBe((await stat(file)).size);
    expect(bytes).toBeGreaterThanOrEqual(60_000_000);
    expect(bytes).toBeLessThan(66_000_000);
    const said = await ask({ ask: 'chat', file, maxTokens: 40 });
    expect(said).toMatchObject({ text: expects.text, ended: true });
  });

  test('a large mixture of experts does too', async () => {
    const { file, bytes, expects } = await make('moe-big', { preset: 'moe', sizeMb: 40 });
    expect(bytes).toBeGreaterThanOrEqual(40_000_000);
    const said = await ask({ ask: 'chat', file, maxTokens: 40 });
    expect(said).toMatchObject({ text: expects.text, ended: true });
  });

  test('embeddings are equal for equal texts and differ for different ones', async () => {
    const { file } = await make('embed', { preset: 'embed' });
    const said = await ask({ ask: 'embed', file, texts: ['a quay', 'a quay', 'something else'] });
    const vectors = 'vectors' in said ? said.vectors : [];
    expect(vectors).toHaveLength(3);
    expect(vectors[0]).toHaveLength(64);
    expect(vectors[0]).toEqual(vectors[1]);
    expect(vectors[0]).not.toEqual(vectors[2]);
  });

  test('a reranker gives each document a score of its own', async () => {
    const { file } = await make('rerank', { preset: 'rerank' });
    const documents = ['the ship lies at berth A', 'bread', 'the ship lies at berth A'];
    const said = await ask({ ask: 'rerank', file, query: 'where is the ship?', documents });
    const scores = 'scores' in said ? said.scores : [];
    expect(scores).toHaveLength(3);
    expect(scores[0]).toBe(scores[2]);
    expect(scores[0]).not.toBe(scores[1]);
  });
});

describe('spoilt files', () => {
  test.each([
    'truncated',
    'header-cut',
    'bad-magic',
    'bad-version',
    'wrong-tensor-size',
    'garbage',
    'empty',
  ] as const)('an engine refuses a file that is spoilt by %s', async (kind) => {
    const { file } = await make(`spoilt-${kind}`, { preset: 'chat-a' });
    await damage(file, kind);
    expect(await ask({ ask: 'chat', file, maxTokens: 5 })).toHaveProperty('refused');
  });

  test('a file on which the engine aborts ends its process, and only that', async () => {
    const { file } = await make('spoilt-aborts', { preset: 'chat-a' });
    await damage(file, 'aborts');
    expect(await ask({ ask: 'chat', file, maxTokens: 5 }, startEngine())).toEqual({ exit: 'SIGABRT' });
  });
});

describe('files', () => {
  test('the same options give the same bytes, another seed gives others', async () => {
    const one = await make('same-1', { preset: 'chat-a', seed: 5 });
    const two = await make('same-2', { preset: 'chat-a', seed: 5 });
    const other = await make('same-3', { preset: 'chat-a', seed: 6 });
    expect(await sha256(one.file)).toBe(await sha256(two.file));
    expect(await sha256(one.file)).not.toBe(await sha256(other.file));
  });

  test('a file that is there is not overwritten unless it is said', async () => {
    const { file } = await make('kept', { preset: 'chat-a' });
    const before = await sha256(file);
    await expect(make('kept', { preset: 'chat-b' })).rejects.toThrow('--force');
    expect(await sha256(file)).toBe(before);
    await make('kept', { preset: 'chat-b', force: true });
    expect(await sha256(file)).not.toBe(before);
  });

  test('a size for a preset that has one is refused', async () => {
    await expect(make('sized', { preset: 'chat-a', sizeMb: 5 })).rejects.toThrow('one size');
  });
});

describe('berth make-model', () => {
  const run = async (...args: string[]) => {
    const child = fork(MAIN, args, { execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    let [out, err] = ['', ''];
    child.stdout?.on('data', (data) => (out += String(data)));
    child.stderr?.on('data', (data) => (err += String(data)));
    const [code] = (await once(child, 'close')) as [number];
    return { code, out, err };
  };

  test('prints one line with the file, its size and what it will say', async () => {
    const file = join(folder, 'deep/er/x.gguf');
    const { code, out } = await run('chat-b', file, '--seed', '3', '--context', '4096');
    expect(code).toBe(0);
    expect(out.trim().split('\n')).toHaveLength(1);
    expect(out).toContain(file);
    expect(out).toContain('KiB');
    expect(out).toContain(expectedText('chat-b', 3).text);
  });

  test.each([
    [['chat-z', 'x.gguf'], 'Known: chat-a, chat-b'],
    [['chat-a'], 'berth make-model PRESET FILE'],
    [['chat-a', '/tmp/x.gguf', '--seed', 'x'], '--seed must be a whole number'],
    [['chat-a', '/tmp/x.gguf', '--frobnicate'], '--frobnicate'],
  ])('refuses %j in words', async (args, words) => {
    const { code, err } = await run(...args);
    expect(code).toBe(1);
    expect(err).toContain(words);
    expect(err).not.toContain('    at ');
  });
});
