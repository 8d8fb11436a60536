import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { anyOf, readTemplate, type TemplateFacts } from './chat-template.js';
import { isGguf } from './file-names.js';
import { depthOfModel, describedFolders, type ModelFolder } from './model-folders.js';
import { processFolders } from './process-folders.js';
import type { ModelRoot } from './roots.js';
import { readName } from './quant.js';
import { entriesOf, statOf, walk, type FolderBudget, type FoundFile } from './walk.js';

export function foldersOf(root: ModelRoot, budget: FolderBudget): Promise<readonly ModelFolder[]> {
  switch (root.name) {
    case 'models':
    case 'lm-studio':
      return plainFolders(root, budget);
    case 'huggingface':
      return huggingFaceFolders(root, budget);
    case 'ollama':
      return ollamaFolders(root, budget);
    case 'process':
      return processFolders(root, budget);
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
  // A folder that says what it is (`config.json`) is one model with all that lies below it.
  const described = describedFolders(inFolders.map((file) => file.relative));
  for (const file of inFolders) {
    const parts = file.relative.split('/');
    const depth = depthOfModel(described, parts);
    const path = parts.slice(0, depth).join('/');
    add(path, path, file, parts.slice(depth).join('/'));
  }
  for (const file of found.filter((f) => !f.relative.includes('/') && isGguf(f.relative))) {
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

const LAYERS = {
  model: 'application/vnd.ollama.image.model',
  projector: 'application/vnd.ollama.image.projector',
  adapter: 'application/vnd.ollama.image.adapter',
  template: 'application/vnd.ollama.image.template',
} as const;
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
    const layers = await layersOf(join(manifests, ...parts));
    const model = layers.find((layer) => layer.kind === 'model');
    if (model === undefined) continue;
    const names = ollamaNames(parts);
    const known = byDigest.get(model.digest);
    if (known) {
      byDigest.set(model.digest, { ...known, aliases: [...known.aliases, ...names.aliases] });
      continue;
    }
    const files: ModelFolder['files'][number][] = [];
    const templates: TemplateFacts[] = [];
    for (const { kind, digest } of layers) {
      const name = digest.replace(':', '-');
      const absolute = join(root.path, 'blobs', name);
      const stats = await statOf(absolute);
      if (!stats?.isFile()) continue;
      if (kind !== 'template') {
        files.push({
          relative: name,
          absolute,
          bytes: stats.size,
          modifiedMs: stats.mtimeMs,
          name,
          role: kind,
        });
      } else if (stats.size <= MAX_MANIFEST_BYTES) {
        templates.push(readTemplate(await readFile(absolute, 'utf8').catch(() => '')));
      }
    }
    if (!files.some((file) => file.role === 'model')) continue;
    const template = anyOf(templates);
    byDigest.set(model.digest, {
      ...names,
      root: root.name,
      path: 'blobs',
      files,
      ...(template === undefined ? {} : { template }),
    });
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

interface Layer {
  readonly kind: keyof typeof LAYERS;
  readonly digest: string;
}

/** The layers of a manifest that are looked at; none when it is no manifest. */
async function layersOf(manifest: string): Promise<readonly Layer[]> {
  const stats = await statOf(manifest);
  if (stats === undefined || stats.size > MAX_MANIFEST_BYTES) return [];
  let content: unknown;
  try {
    content = JSON.parse(await readFile(manifest, 'utf8'));
  } catch {
    // Written just now, or no manifest: a later scan sees it whole.
    return [];
  }
  if (typeof content !== 'object' || content === null || !('layers' in content)) return [];
  const layers: unknown = content.layers;
  if (!Array.isArray(layers)) return [];
  return (layers as readonly unknown[]).flatMap((layer): readonly Layer[] => {
    if (typeof layer !== 'object' || layer === null) return [];
    const { mediaType, digest } = layer as { mediaType?: unknown; digest?: unknown };
    const kind = (Object.keys(LAYERS) as (keyof typeof LAYERS)[]).find((k) => LAYERS[k] === mediaType);
    return kind !== undefined && typeof digest === 'string' && DIGEST.test(digest) ? [{ kind, digest }] : [];
  });
}
