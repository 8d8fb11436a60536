import { mkdir, readdir, readFile, readlink, rename, writeFile } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { isObject } from './describing.js';
import { hintsOf, type Hints, type SeenProcess } from './command-lines.js';
import type { ModelRoot, NamedFiles } from './roots.js';
import { realOf } from './walk.js';

const MOST = 64;

/**
 * Where running programs say that models lie. What was said is remembered, so that a model does not go because the
 * program that named it ended; it is forgotten when it is no longer on the disk.
 */
export class ProcessHints {
  private readonly known = new Map<string, ModelRoot>();
  private recalled = false;

  /**
   * @param memory file in which they are remembered over a restart; none when left out.
   * @param proc where the operating system shows processes.
   */
  constructor(
    private readonly memory?: string,
    private readonly proc = '/proc',
  ) {}

  /** Roots that are not below one of `others`; each is on the disk now. */
  async roots(others: readonly ModelRoot[]): Promise<readonly ModelRoot[]> {
    if (!this.recalled) await this.recall();
    const before = [...this.known.keys()].join('\n');
    for (const process of await seenProcesses(this.proc)) {
      for (const root of rootsOf(hintsOf(process))) {
        if (this.known.size < MOST) this.known.set(keyOf(root), root);
      }
    }
    const edges = await Promise.all(others.map(({ path }) => realOf(path)));
    const kept: ModelRoot[] = [];
    for (const [key, root] of this.known) {
      const real = await realOf(root.named?.model ?? root.path);
      const inside = edges.some((edge) => edge !== undefined && real !== undefined && within(real, edge));
      if (real === undefined || inside) this.known.delete(key);
      else kept.push(root);
    }
    if (before !== [...this.known.keys()].join('\n')) await this.remember();
    return kept;
  }

  private async recall(): Promise<void> {
    this.recalled = true;
    if (this.memory === undefined) return;
    try {
      const content: unknown = JSON.parse(await readFile(this.memory, 'utf8'));
      for (const root of (Array.isArray(content) ? content : []).flatMap(asRoot).slice(0, MOST)) {
        this.known.set(keyOf(root), root);
      }
    } catch {
      // None yet, or damaged: what runs now names them again.
    }
  }

  private async remember(): Promise<void> {
    if (this.memory === undefined) return;
    await mkdir(dirname(this.memory), { recursive: true, mode: 0o700 });
    const part = `${this.memory}.part`;
    await writeFile(part, JSON.stringify([...this.known.values()]), { mode: 0o600 });
    await rename(part, this.memory);
  }
}

const keyOf = (root: ModelRoot): string => `${root.name} ${root.named?.model ?? root.path}`;
const within = (path: string, edge: string): boolean => (path + sep).startsWith(edge + sep);

const rootsOf = ({ files, roots }: Hints): readonly ModelRoot[] => [
  ...roots,
  ...files.map((named) => ({ name: 'process' as const, path: dirname(named.model), named })),
];

function asRoot(value: unknown): readonly ModelRoot[] {
  if (!isObject(value) || typeof value['path'] !== 'string') return [];
  const { name, path, named } = value;
  if (name === 'huggingface' || name === 'ollama' || name === 'models') return [{ name, path }];
  if (name !== 'process' || !isObject(named) || typeof named['model'] !== 'string') return [];
  const strings = (list: unknown): readonly string[] =>
    Array.isArray(list) ? list.filter((one): one is string => typeof one === 'string') : [];
  const files: NamedFiles = {
    model: named['model'],
    projectors: strings(named['projectors']),
    adapters: strings(named['adapters']),
  };
  return [{ name, path, named: files }];
}

/** Processes whose command line is ours to see; none where there is no /proc. */
async function seenProcesses(proc: string): Promise<readonly SeenProcess[]> {
  const pids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name));
  const seen: SeenProcess[] = [];
  for (const pid of pids) {
    const argv = split(await readFile(`${proc}/${pid}/cmdline`, 'utf8').catch(() => ''));
    // Most processes are nothing of the kind: their environment is not opened.
    if (!/llama|vllm|sglang|ollama|kobold/i.test(argv.slice(0, 4).join(' '))) continue;
    const cwd = await readlink(`${proc}/${pid}/cwd`).catch(() => undefined);
    const env = Object.fromEntries(
      split(await readFile(`${proc}/${pid}/environ`, 'utf8').catch(() => ''))
        .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)] as const)
        .filter(([name]) => /^(?:LLAMA_ARG_MODELS?(?:_DIR)?|HF_HOME|HF_HUB_CACHE|OLLAMA_MODELS)$/.test(name)),
    );
    seen.push({ argv, env, ...(cwd === undefined ? {} : { cwd }) });
  }
  return seen;
}

const split = (text: string): readonly string[] => {
  const parts = text.split('\0');
  return parts.at(-1) === '' ? parts.slice(0, -1) : parts;
};
