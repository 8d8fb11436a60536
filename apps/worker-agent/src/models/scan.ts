import type { FoundModel } from '#domain/events/catalog-events.js';
import { modelKey } from '#domain/ids.js';
import { assemble, type ScannedModel } from './assemble.js';
import { isBase, type LooseAttachment } from './attachments.js';
import { DescribingReader } from './describing.js';
import type { FileStamp } from './file-facts.js';
import { isGguf, isSafetensors } from './file-names.js';
import { HeaderReader } from './header-reader.js';
import { readSidecars } from './marker-files.js';
import type { ModelRoot } from './roots.js';
import type { ModelFolder } from './model-folders.js';
import { foldersOf } from './stores.js';
import { FolderBudget } from './walk.js';
import type { ReadFile } from './weight-file.js';

export { type ScannedModel } from './assemble.js';

export interface Scan {
  /** Sorted by key. */
  readonly models: readonly ScannedModel[];
  /** Every folder that was looked into: a change shows in one of them. */
  readonly folders: readonly string[];
  /** Every file of the models that were found, as it was then; by its absolute path. */
  readonly stamps: ReadonlyMap<string, FileStamp>;
  /** Roots that hold more folders than a scan opens; the rest of them was not seen. */
  readonly cutRoots: readonly string[];
}

export interface ScanReaders {
  readonly headers: HeaderReader;
  readonly describing: DescribingReader;
  /** Berth's own folder of markers for models whose folder cannot be written. */
  readonly sidecars?: string;
}

/**
 * Looks through the roots. A file that cannot be read is listed as broken, in words; a root that is not there holds
 * nothing. The first root that has a key wins; further names for it are kept as aliases.
 */
export async function scan(
  roots: readonly ModelRoot[],
  readers: ScanReaders | HeaderReader,
  nowMs: () => number,
): Promise<Scan> {
  const { headers, describing, sidecars } =
    readers instanceof HeaderReader
      ? { headers: readers, describing: new DescribingReader(), sidecars: undefined }
      : readers;
  const startedMs = nowMs();
  const found = new Map<string, ModelFolder>();
  const folders: string[] = [];
  const cutRoots: string[] = [];
  for (const root of roots) {
    const budget = new FolderBudget();
    for (const one of await foldersOf(root, budget)) {
      const folder = { ...one, key: callable(one.key) };
      const known = found.get(folder.key);
      found.set(
        folder.key,
        known === undefined
          ? folder
          : { ...known, aliases: [...new Set([...known.aliases, ...folder.aliases])] },
      );
    }
    folders.push(...budget.opened);
    if (budget.cut) cutRoots.push(root.path);
  }

  const seen = new Map<string, FileStamp>();
  const models: ScannedModel[] = [];
  const loose: { readonly folder: ModelFolder; readonly adapter: LooseAttachment }[] = [];
  const beside = await readSidecars(sidecars);
  // Asked together: the readers take as many at once as a disk answers.
  const contents = await Promise.all(
    [...found.values()].map(async (folder) => {
      for (const file of folder.files) seen.set(file.absolute, file);
      const [gguf, safetensors, described] = await Promise.all([
        readAll(headers, folder, 'gguf'),
        readAll(headers, folder, 'safetensors'),
        describing.read(folder.files),
      ]);
      const sidecar = beside.get(folder.key);
      return {
        folder,
        content: { gguf, safetensors, described, ...(sidecar === undefined ? {} : { sidecar }) },
      };
    }),
  );
  for (const { folder, content } of contents) {
    const assembled = assemble(folder, content, startedMs);
    if (assembled.scanned !== undefined) models.push(assembled.scanned);
    for (const adapter of assembled.loose) loose.push({ folder, adapter });
  }
  headers.keepOnly(seen);
  describing.keepOnly(seen);
  const attached = attach(models, loose);
  return {
    models: [...attached].sort((a, b) => (a.model.modelKey < b.model.modelKey ? -1 : 1)),
    folders,
    stamps: seen,
    cutRoots,
  };
}

/** A name of a folder may hold what no caller can type, and what breaks a line of a log in two. */
const callable = (key: string): string => key.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '_');

function readAll(
  headers: HeaderReader,
  folder: ModelFolder,
  format: 'gguf' | 'safetensors',
): Promise<readonly ReadFile[]> {
  const is = (file: ModelFolder['files'][number]) =>
    format === 'gguf' ? file.role !== undefined || isGguf(file.name) : isSafetensors(file.name);
  return Promise.all(
    folder.files
      .filter(is)
      .map(async (file) => ({ file, facts: await headers.read(file.absolute, file, format) })),
  );
}

/** Gives adapters that lie in folders of their own to their base; one without a base is listed, and why it is not offered. */
function attach(
  models: readonly ScannedModel[],
  loose: readonly { readonly folder: ModelFolder; readonly adapter: LooseAttachment }[],
): readonly ScannedModel[] {
  const result = [...models];
  for (const { folder, adapter } of loose) {
    const at = result.findIndex(({ model }) => adapter.bases.some((base) => isBase(model.modelKey, base)));
    const base = result[at];
    if (base === undefined) {
      result.push(withoutBase(folder, adapter));
      continue;
    }
    const own = base.model.artifacts.find((a) => a.geometry !== undefined)?.geometry?.architecture;
    const other = adapter.architecture !== undefined && own !== undefined && adapter.architecture !== own;
    const attachment = {
      ...adapter.attachment,
      label: uniqueLabel(base.model, adapter.attachment.label, folder.key),
      at: { root: folder.root, path: folder.path },
      ...(other ? { broken: `it is for ${adapter.architecture}, and its base is ${own}` } : {}),
    };
    result[at] = {
      ...base,
      model: { ...base.model, attachments: [...(base.model.attachments ?? []), attachment] },
      attached: new Map(base.attached).set(attachment.label, adapter.path),
    };
  }
  return result;
}

const uniqueLabel = (model: FoundModel, label: string, key: string): string =>
  label === 'adapter_model' || (model.attachments ?? []).some((a) => a.label === label) ? key : label;

function withoutBase(folder: ModelFolder, { attachment, bases, path }: LooseAttachment): ScannedModel {
  const base = bases[0] ?? 'a base that its files do not name';
  return {
    model: {
      modelKey: modelKey(folder.key),
      aliases: folder.aliases,
      root: folder.root,
      path: folder.path,
      kind: 'chat',
      framework: 'gguf',
      artifacts: [
        {
          label: 'adapter',
          files: attachment.files,
          complete: true,
          broken: attachment.broken ?? `it is an adapter for ${base}, which is not on this machine`,
        },
      ],
      marker: { source: 'derived', reasons: [`it is an adapter for ${base}`] },
    },
    files: new Map([['adapter', [path]]]),
    attached: new Map(),
    settling: false,
  };
}

/** Every model below the roots, once. */
export async function scanModels(roots: readonly ModelRoot[]): Promise<readonly ScannedModel[]> {
  const reader = new HeaderReader();
  try {
    return (await scan(roots, reader, Date.now)).models;
  } finally {
    await reader.close();
  }
}
