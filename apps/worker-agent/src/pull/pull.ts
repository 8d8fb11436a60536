import { mkdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { formatBytes } from '#domain/units.js';
import { DISK_SPARE_BYTES, type DiskLimit, whyBeyondDisk } from '#domain/worker/disk-limit.js';
import { choose, type RepoFile } from './choose.js';
import { bytesBelow, bytesComing, type Coming, missingBytes, noteTransfer } from './disk-use.js';
import { download, RefusedByServer } from './download.js';
import { authorization, fileUrl, listRepo, refusal, unreachable, type HubAccess } from './hub.js';
import type { Progress } from './progress.js';
import { parseSource } from './source.js';

export interface PullOptions {
  readonly source: string;
  /** Root of models; the files go to `<models>/<owner>/<repo>/`. */
  readonly models: string;
  readonly access: HubAccess;
  readonly signal: AbortSignal;
  readonly progress: Progress;
  readonly retryMs?: number;
  /** Of what all models in `models` take, as it is when a transfer is about to begin. */
  readonly diskLimit?: () => DiskLimit | undefined;
  /** Told of each file that was fetched, once it is whole. */
  readonly onFile?: (file: FetchedFile) => void;
}

export interface FetchedFile {
  /** In the repository. */
  readonly file: string;
  readonly bytes: number;
  readonly seconds: number;
  readonly resumedFromBytes: number;
  readonly sha256?: string;
}

export interface Pulled {
  readonly modelKey: string;
  readonly label: string;
  readonly files: readonly {
    readonly path: string;
    readonly bytes: number;
    /** It was there already, whole. */
    readonly present: boolean;
    readonly resumedFromBytes: number;
  }[];
}

/** Fetches one loadable form of a model. @throws Error in one sentence or a list of choices. */
export async function pull(options: PullOptions): Promise<Pulled> {
  const { access, signal } = options;
  const { owner, repo, pick } = parseSource(options.source);
  const modelKey = `${owner}/${repo}`;
  const listed = await listRepo(access, modelKey, signal);
  const choice = choose(modelKey, listed, pick);
  const folder = join(options.models, owner, repo);
  const targets = choice.files.map((file) => ({ file, target: join(folder, ...safeParts(file.path)) }));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const coming = targets.map(({ file, target }) => ({ target, bytes: file.bytes }));
  let neededBytes = 0;
  for (const file of coming) neededBytes += await missingBytes(file);
  // Noted before it looks: of two that begin at once, each sees the other.
  const forget = neededBytes === 0 ? undefined : await noteTransfer(options.models, coming);
  try {
    if (neededBytes > 0) await checkSpace(options, folder, coming, neededBytes);
    return { modelKey, label: choice.label, files: await fetchAll(options, modelKey, targets, choice.bytes) };
  } finally {
    await forget?.();
  }
}

/** One after the other; those that are there already are not fetched again. */
async function fetchAll(
  options: PullOptions,
  modelKey: string,
  targets: readonly { readonly file: RepoFile; readonly target: string }[],
  totalBytes: number,
): Promise<Pulled['files']> {
  const { access, signal, progress } = options;
  const files: Pulled['files'][number][] = [];
  let done = 0;
  progress.start(totalBytes);
  try {
    for (const { file, target } of targets) {
      const present = (await sizeOf(target)) === file.bytes;
      let resumedFromBytes = 0;
      const startedMs = performance.now();
      if (!present) {
        const base = done;
        try {
          ({ resumedFromBytes } = await download({
            url: fileUrl(access, modelKey, file.path),
            headers: authorization(access),
            file,
            target,
            signal,
            onProgress: (bytes) => progress.at(base + bytes, file.path),
            ...(options.retryMs === undefined ? {} : { retryMs: options.retryMs }),
          }));
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof RefusedByServer) {
            throw new Error(refusal(access, modelKey, error.status), { cause: error });
          }
          throw unreachable(access, error);
        }
      }
      if (!present) {
        options.onFile?.({
          file: file.path,
          bytes: file.bytes,
          seconds: (performance.now() - startedMs) / 1000,
          resumedFromBytes,
          ...(file.sha256 === undefined ? {} : { sha256: file.sha256 }),
        });
      }
      done += file.bytes;
      progress.at(done, file.path);
      files.push({ path: target, bytes: file.bytes, present, resumedFromBytes });
    }
  } finally {
    progress.stop();
  }
  return files;
}

/** A listed path as parts that stay within the folder. */
function safeParts(path: string): readonly string[] {
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part.startsWith('.') || /[\\\0]/.test(part))) {
    throw new Error(`The hub lists a file "${path}", whose path is not safe to write. It was not fetched.`);
  }
  return parts;
}

/** @throws Error when the limit or the drive leaves too little; nothing of it was fetched then. */
async function checkSpace(
  { models, diskLimit }: PullOptions,
  folder: string,
  coming: readonly Coming[],
  neededBytes: number,
): Promise<void> {
  const limit = diskLimit?.();
  if (limit) {
    const comingBytes = await bytesComing(models, coming);
    const use = { neededBytes, thereBytes: await bytesBelow(models), comingBytes };
    const why = whyBeyondDisk(limit, use, models);
    if (why !== undefined) throw new Error(why);
  }
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (neededBytes + DISK_SPARE_BYTES > freeBytes) {
    throw new Error(
      `${formatBytes(neededBytes)} are needed below ${folder}, where ${formatBytes(freeBytes)} are free ` +
        `(${formatBytes(DISK_SPARE_BYTES)} are kept free). Make room, pick a smaller quant, or set BERTH_MODELS to another drive.`,
    );
  }
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.size ?? 0;
