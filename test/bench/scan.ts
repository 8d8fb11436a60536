import { copyFile, mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { gguf } from '@huggingface/gguf';
import type { CatalogEvent } from '#domain/events/index.js';
import { workerId } from '#domain/ids.js';
import { openEventLog } from '#events/connect.js';
import { streams } from '#events/streams.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { newId } from '#runtime/ids.js';
import { createLogger } from '#runtime/logger.js';
import { startCatalog } from '../../apps/worker-agent/src/models/catalog.js';
import { DescribingReader } from '../../apps/worker-agent/src/models/describing.js';
import { HeaderReader } from '../../apps/worker-agent/src/models/header-reader.js';
import { readGguf } from '../../apps/worker-agent/src/models/gguf-file.js';
import { headerBytes, type SampleValue } from '../../apps/worker-agent/src/models/gguf-samples.js';
import { scan } from '../../apps/worker-agent/src/models/scan.js';
import { makeModel } from '../../apps/worker-agent/src/make-model/index.js';

/**
 * Times scans of 10,000 files: headers unknown, then known, then one file changed, then by a new process that remembers
 * them. Once as GGUF files in 2,500 folders, once as folders for transformers of ten files each. Then how long it takes from
 * a change on disk to its event in the log, with the first of them watched and hashed. Then one header as large models have
 * it, read by the reader here and by the one of Hugging Face.
 */
const FILES = 10_000;
const LABELS = ['F16', 'Q8_0', 'Q6_K', 'Q4_K_M'];
const SHARDS = 5;
const CHANGES = 9;
const WORDS = 150_000;
const READS = 9;
const HEADINGS = '  seconds  of processor  headers read  artifacts';

const root = await mkdtemp(join(tmpdir(), 'berth-scan-bench-'));
try {
  console.log(`${FILES} files, load ${loadavg()[0]?.toFixed(1)}; budget of a scan 3 s`);
  console.log(`${'GGUF'.padEnd(28)}${HEADINGS}`);
  await measure(join(root, 'gguf'), await ggufFolders(join(root, 'gguf')));
  console.log(`${'for transformers'.padEnd(28)}${HEADINGS}`);
  await measure(join(root, 'modern'), await safetensorsFolders(join(root, 'modern')));
  await changes(join(root, 'gguf'));
  await readers(join(root, 'large.gguf'));
} finally {
  await rm(root, { recursive: true, force: true });
}

/** @returns one of the files. */
async function ggufFolders(models: string): Promise<string> {
  const source = join(root, 'made.gguf');
  await makeModel({ preset: 'embed', file: source });
  const bytes = await readFile(source);
  for (let i = 0; i < FILES / LABELS.length; i++) {
    const folder = join(models, `owner-${i % 50}`, `repo-${i}`);
    await mkdir(folder, { recursive: true });
    for (const label of LABELS) await writeFile(join(folder, `model-${label}.gguf`), bytes);
  }
  return join(models, 'owner-0', 'repo-0', 'model-F16.gguf');
}

async function safetensorsFolders(models: string): Promise<string> {
  const names = Array.from({ length: SHARDS }, (_, i) => `model-0000${i + 1}-of-0000${SHARDS}.safetensors`);
  const beside: Readonly<Record<string, object>> = {
    'config.json': {
      architectures: ['LlamaForCausalLM'],
      model_type: 'llama',
      num_hidden_layers: SHARDS * 4,
      num_attention_heads: 8,
      num_key_value_heads: 2,
      hidden_size: 64,
      max_position_embeddings: 8192,
    },
    'generation_config.json': {},
    'tokenizer.json': {},
    'tokenizer_config.json': {
      chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
    },
    'model.safetensors.index.json': {
      weight_map: Object.fromEntries(names.map((name, i) => [`model.layers.${i}.w`, name])),
    },
  };
  const shards = names.map((_, i) => shard(i * 4));
  for (let i = 0; i < FILES / (SHARDS + Object.keys(beside).length); i++) {
    const folder = join(models, `owner-${i % 50}`, `repo-${i}`);
    await mkdir(folder, { recursive: true });
    for (const [name, content] of Object.entries(beside))
      await writeFile(join(folder, name), JSON.stringify(content));
    for (const [n, name] of names.entries()) await writeFile(join(folder, name), shards[n] ?? '');
  }
  return join(models, 'owner-0', 'repo-0', names[0] ?? '');
}

/** Four blocks of nine tensors, as one file of a set has them. */
function shard(firstBlock: number): Buffer {
  const header: Record<string, unknown> = {};
  let at = 0;
  for (let block = firstBlock; block < firstBlock + 4; block++) {
    for (let n = 0; n < 9; n++) {
      header[`model.layers.${block}.part_${n}.weight`] = {
        dtype: 'BF16',
        shape: [8, 64],
        data_offsets: [at, (at += 8 * 64 * 2)],
      };
    }
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, Buffer.alloc(at)]);
}

async function measure(models: string, one: string): Promise<void> {
  const roots = [{ name: 'models' as const, path: models }];
  const memory = join(root, `${Date.now()}.json`);
  const timed = async (what: string, headers: HeaderReader, describing: DescribingReader) => {
    const before = headers.reads;
    const cpu = process.cpuUsage();
    const started = performance.now();
    const found = await scan(roots, { headers, describing }, Date.now);
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    const artifacts = found.models
      .flatMap(({ model }) => model.artifacts)
      .filter((a) => a.broken === undefined);
    console.log(
      `  ${what.padEnd(26)}${seconds.toFixed(2).padStart(7)}${((user + system) / 1e6).toFixed(2).padStart(15)}` +
        `${String(headers.reads - before).padStart(14)}${String(artifacts.length).padStart(11)}`,
    );
  };
  const first = new HeaderReader(memory);
  const describing = new DescribingReader();
  await timed('the first ever', first, describing);
  await timed('again, nothing changed', first, describing);
  await utimes(one, new Date(), new Date());
  await timed('again, one file changed', first, describing);
  await first.save();
  await first.close();
  const second = new HeaderReader(memory);
  await timed('after a restart', second, new DescribingReader());
  await second.close();
}

/** Files that are put into watched folders one by one, and each looked for in the log. */
async function changes(models: string): Promise<void> {
  const node = await startEmbeddedNode();
  const log = openEventLog({ url: node.url, by: 'test', now: Date.now });
  const logger = createLogger('bench');
  logger.level = 'silent';
  const worker = workerId(newId());
  const roots = [{ name: 'models' as const, path: models }];
  const catalog = await startCatalog({
    log,
    workerId: worker,
    models,
    logger,
    roots,
    home: join(root, 'home'),
  });
  const heard = new Map<string, () => void>();
  const follows = log.subscribe<CatalogEvent>(streams.catalog(worker), {
    onEvent: ({ event }) => {
      if (event.type === 'ModelChanged') heard.get(event.data.modelKey)?.();
    },
  });
  const seconds: number[] = [];
  try {
    for (let i = 0; i < CHANGES; i++) {
      const repo = `owner-${i % 50}/repo-${i}`;
      const told = new Promise<void>((resolve) => heard.set(repo, resolve));
      const startedMs = performance.now();
      await copyFile(join(root, 'made.gguf'), join(models, repo, 'model-Q5_K_M.gguf'));
      await told;
      seconds.push((performance.now() - startedMs) / 1000);
    }
  } finally {
    await catalog.stop();
    await follows.stop();
    await log.close();
    await node.stop();
  }
  const sorted = seconds.sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(2);
  console.log(
    `a change on disk to its event: p50 ${at(0.5)} s, the longest of ${CHANGES} ${at(1)} s; budget 2 s`,
  );
}

/** A header with a vocabulary of 150,000 words, each with its score and its type, and a merge for nearly every one. */
async function readers(file: string): Promise<void> {
  const list = (of: number, value: (i: number) => SampleValue): SampleValue => ({
    type: 9,
    of,
    value: Array.from({ length: WORDS }, (_, i) => value(i)),
  });
  const bytes = headerBytes({
    pairs: [
      ['general.architecture', { type: 8, value: 'llama' }],
      ['tokenizer.ggml.tokens', list(8, (i) => ({ type: 8, value: `word-${i}` }))],
      ['tokenizer.ggml.scores', list(6, (i) => ({ type: 6, value: i }))],
      ['tokenizer.ggml.token_type', list(5, () => ({ type: 5, value: 1 }))],
      ['tokenizer.ggml.merges', list(8, (i) => ({ type: 8, value: `wo rd-${i}` }))],
    ],
    tensors: Array.from({ length: 300 }, (_, i) => ({
      name: `blk.${i}.weight`,
      shape: [8n, 8n],
      type: 0,
      offset: BigInt(i * 256),
    })),
  });
  await writeFile(file, Buffer.concat([bytes, Buffer.alloc(300 * 256 + 64)]));
  const { size } = await stat(file);
  const of = async (read: () => Promise<unknown>): Promise<string> => {
    const ms: number[] = [];
    for (let i = 0; i < READS; i++) {
      const cpu = process.cpuUsage();
      await read();
      const { user, system } = process.cpuUsage(cpu);
      ms.push((user + system) / 1000);
    }
    return `${(ms.sort((a, b) => a - b)[Math.floor(READS / 2)] ?? 0).toFixed(1)} ms`;
  };
  const own = await of(() => readGguf(file, size));
  const other = await of(() => gguf(file, { allowLocalFile: true }));
  console.log(
    `a header of ${(bytes.length / 1024 / 1024).toFixed(1)} MiB with ${WORDS} words: ${own} of processor, by @huggingface/gguf ${other}`,
  );
}
