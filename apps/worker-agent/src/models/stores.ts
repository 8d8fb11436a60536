import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelRoot } from './roots.js';
import { readName } from './quant.js';
import { entriesOf, statOf, walk, type FolderBudget, type FoundFile } from './walk.js';

/** Files that belong to one model, before anything is read of them. */
export interface ModelFolder {
  readonly key: string;
  readonly aliases: readonly string[];
  readonly root: ModelRoot['name'];
  /** Relative to the root. */
  readonly path: string;
  /** Names relative to `path`. */
  readonly files: readonly (FoundFile & { readonly name: string; readonly label?: string })[];
}

export function foldersOf(root: ModelRoot, budget: FolderBudget): Promise<readonly ModelFolder[]> {
  switch (root.name) {
    case 'models':
    case 'lm-studio':
      return plainFolders(root, budget);
    case 'huggingface':
      return huggingFaceFolders(root, budget);
    case 'ollama':
      return ollamaFolders(root, budget);
  }
}

/** `<owner>/<repo>/…`, `<name>/x.gguf`, and bare files, which are named by their file. */
async function plainFolders(root: ModelRoot, budget: FolderBudget): Promise<readonly ModelFolder[]> {
  const found = await walk(root.path, budget);
  const folders = new Map<string, { path: string; files: ModelFolder['files'] }>();
  const add = (key: string, path: string, file: FoundFile, name: string) => {
    folders.set(key, { path, files: [...(folders.get(key)?.files ?? []), { ...file, name }] });
  };
  const inFolders = found.filter((file) => file.relative.includes('/'));
  for (const file of inFolders) {
    const parts = file.relative.split('/');
    const depth = Math.min(2, parts.length - 1);
    const path = parts.slice(0, depth).join('/');
    add(path, path, file, parts.slice(depth).join('/'));
  }
  for (const file of found.filter((f) => !f.relative.includes('/'))) {
    const { base } = readName(file.relative);
    // A folder of that name is another model: then the file's whole name is its key.
    const taken = base === '' || (folders.get(base)?.path ?? '.') !== '.';
    add(taken ? file.relative.replace(/\.gguf$/i, '') : base, '.', file, file.relative);
  }
  return [...folders].map(([key, { path, files }]) => ({ key, aliases: [], root: root.name, path, files }));
}

/** `models--owner--repo/snapshots/<revision>/…`, links into `blobs`; the revision that `main` names, else the newest. */
async function huggingFaceFolders(root: ModelRoot, budget: FolderBudget): Promise<readonly ModelFolder[]> {
  const folders: ModelFolder[] = [];
  for (const { name } of await entriesOf(root.path, budget)) {
    if (!name.startsWith('models--')) continue;
    const repo = join(root.path, name);
    for (const revision of await revisionsOf(repo, budget)) {
      const path = `${name}/snapshots/${revision}`;
      const files = await walk(join(root.path, path), budget, repo);
      if (files.length === 0) continue;
      folders.push({
        key: name.slice('models--'.length).replaceAll('--', '/'),
        aliases: [],
        root: root.name,
        path,
        files: files.map((file) => ({ ...file, name: file.relative })),
      });
      break;
    }
  }
  return folders;
}

async function revisionsOf(repo: string, budget: FolderBudget): Promise<readonly string[]> {
  const refs = join(repo, 'refs');
  const hasMain = (await entriesOf(refs, budget)).some((entry) => entry.name === 'main');
  const main = hasMain ? await readFile(join(refs, 'main'), 'utf8').catch(() => '') : '';
  const names = (await entriesOf(join(repo, 'snapshots'), budget)).map((entry) => entry.name);
  const dated = await Promise.all(
    names.map(async (name) => ({
      name,
      at: name === main.trim() ? Infinity : ((await statOf(join(repo, 'snapshots', name)))?.mtimeMs ?? 0),
    })),
  );
  return dated.sort((a, b) => b.at - a.at).map((d) => d.name);
}

const MODEL_LAYER = 'application/vnd.ollama.image.model';
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** `manifests/<host>/<namespace>/<name>/<tag>` names a blob; its own names (`llama3:8b`) become aliases. */
async function ollamaFolders(root: ModelRoot, budget: FolderBudget): Promise<readonly ModelFolder[]> {
  const manifests = join(root.path, 'manifests');
  const paths: (readonly string[])[] = [];
  const visit = async (parts: readonly string[]): Promise<void> => {
    for (const entry of await entriesOf(join(manifests, ...parts), budget)) {
      if (entry.isDirectory() && parts.length < 3) await visit([...parts, entry.name]);
      else if (entry.isFile() && parts.length === 3) paths.push([...parts, entry.name]);
    }
  };
  await visit([]);

  const byDigest = new Map<string, ModelFolder>();
  for (const parts of paths.sort()) {
    const digest = await modelDigest(join(manifests, ...parts));
    if (digest === undefined) continue;
    const names = ollamaNames(parts);
    const known = byDigest.get(digest);
    if (known) {
      byDigest.set(digest, { ...known, aliases: [...known.aliases, ...names.aliases] });
      continue;
    }
    const name = digest.replace(':', '-');
    const absolute = join(root.path, 'blobs', name);
    const stats = await statOf(absolute);
    if (!stats?.isFile()) continue;
    const file = { relative: name, absolute, bytes: stats.size, modifiedMs: stats.mtimeMs, name };
    byDigest.set(digest, { ...names, root: root.name, path: 'blobs', files: [file] });
  }
  return [...byDigest.values()];
}

function ollamaNames(parts: readonly string[]): { key: string; aliases: readonly string[] } {
  const [host = '', namespace = '', name = '', tag = ''] = parts;
  const own = host === 'registry.ollama.ai';
  const prefix = own ? (namespace === 'library' ? '' : `${namespace}/`) : `${host}/${namespace}/`;
  const latest = tag === 'latest';
  return {
    key: `${own && namespace === 'library' ? 'ollama' : namespace}/${name}${latest ? '' : `-${tag}`}`,
    aliases: [`${prefix}${name}:${tag}`, ...(latest && prefix !== '' ? [`${prefix}${name}`] : [])],
  };
}

/** Digest of the layer that holds the weights; undefined when the manifest is none or names no such layer. */
async function modelDigest(manifest: string): Promise<string | undefined> {
  const stats = await statOf(manifest);
  if (stats === undefined || stats.size > MAX_MANIFEST_BYTES) return undefined;
  let content: unknown;
  try {
    content = JSON.parse(await readFile(manifest, 'utf8'));
  } catch {
    // Written just now, or no manifest: a later scan sees it whole.
    return undefined;
  }
  if (typeof content !== 'object' || content === null || !('layers' in content)) return undefined;
  const layers: unknown = content.layers;
  if (!Array.isArray(layers)) return undefined;
  for (const layer of layers as readonly unknown[]) {
    if (typeof layer !== 'object' || layer === null) continue;
    const { mediaType, digest } = layer as { mediaType?: unknown; digest?: unknown };
    if (mediaType === MODEL_LAYER && typeof digest === 'string' && DIGEST.test(digest)) return digest;
  }
  return undefined;
}
