import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatBytes } from '#domain/units.js';
import type { RepoFile } from './choose.js';
import { networkCode } from './hub.js';

export interface DownloadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: RepoFile;
  /** Where it goes when it is whole; until then it grows in `<target>.part`. */
  readonly target: string;
  readonly signal: AbortSignal;
  /** Bytes that are on disk now. */
  onProgress(bytes: number): void;
  /** Between two tries; tests make it short. */
  readonly retryMs?: number;
}

export interface Downloaded {
  readonly resumedFromBytes: number;
}

/** The server answered, and refused. */
export class RefusedByServer extends Error {
  constructor(readonly status: number) {
    super(`The server answered with status ${status}.`);
  }
}

const TRIES_WITHOUT_PROGRESS = 5;
/** A connection that brings nothing for so long is taken as broken. */
const STALL_MS = 60_000;

/**
 * Fetches one file, going on where a `.part` ends, and checks it before it gets its name. A connection that breaks is
 * taken up again for as long as every few tries bring something.
 * @throws RefusedByServer, an Error of the network (its code in the cause), or an Error in words for a wrong content.
 */
export async function download(options: DownloadOptions): Promise<Downloaded> {
  const { file, target, signal } = options;
  const part = `${target}.part`;
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  let have = await sizeOf(part);
  if (have !== undefined && have > file.bytes) {
    await rm(part);
    have = undefined;
  }
  const resumedFromBytes = have ?? 0;
  options.onProgress(resumedFromBytes);
  let fruitless = 0;
  while (have === undefined || have < file.bytes) {
    const before: number = have ?? 0;
    let failure: unknown = new Error('the connection ended before the file did');
    try {
      await fetchOnce(options, part, before);
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
    have = await sizeOf(part);
    if (have !== undefined && have >= file.bytes) break;
    fruitless = (have ?? 0) > before ? 0 : fruitless + 1;
    if (isFinal(failure) || fruitless >= TRIES_WITHOUT_PROGRESS) throw failure;
    await pause((options.retryMs ?? 1000) * 2 ** fruitless, signal);
  }
  await check(file, part, have);
  await rename(part, target);
  return { resumedFromBytes };
}

const sizeOf = async (path: string): Promise<number | undefined> =>
  (await stat(path).catch(() => undefined))?.size;

/** Trying again at once cannot help. */
const isFinal = (failure: unknown): boolean =>
  failure instanceof RefusedByServer ? failure.status < 500 : networkCode(failure) === 'ECONNREFUSED';

async function fetchOnce(options: DownloadOptions, part: string, from: number): Promise<void> {
  const stalled = new AbortController();
  let timer = setTimeout(() => stalled.abort(new Error('nothing arrived')), STALL_MS);
  try {
    const response = await fetch(options.url, {
      headers: { ...options.headers, ...(from > 0 ? { range: `bytes=${from}-` } : {}) },
      signal: AbortSignal.any([options.signal, stalled.signal]),
    });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw new RefusedByServer(response.status);
    }
    // A server that does not know ranges sends all of it again.
    const start = response.status === 206 ? from : 0;
    const handle = await open(part, start > 0 ? 'r+' : 'w', 0o600);
    try {
      let at = start;
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        clearTimeout(timer);
        timer = setTimeout(() => stalled.abort(new Error('nothing arrived')), STALL_MS);
        await handle.write(chunk, 0, chunk.length, at);
        at += chunk.length;
        options.onProgress(at);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @throws Error in words, after the spoilt part was removed: going on from it could never succeed. */
async function check(file: RepoFile, part: string, bytes: number): Promise<void> {
  const discard = async (why: string) => {
    await rm(part, { force: true });
    throw new Error(
      `${file.path} ${why}. What was fetched of it has been removed: run the same command again.`,
    );
  };
  if (bytes !== file.bytes) {
    await discard(`should have ${formatBytes(file.bytes)} (${file.bytes} bytes), but ${bytes} bytes came`);
  }
  if (file.sha256 !== undefined) {
    const sum = await digest(createHash('sha256'), part);
    if (sum !== file.sha256)
      await discard(`is not what the hub lists: its SHA-256 is ${sum}, not ${file.sha256}`);
  } else if (file.gitSha1 !== undefined) {
    const sum = await digest(createHash('sha1').update(`blob ${bytes}\0`), part);
    if (sum !== file.gitSha1)
      await discard(`is not what the hub lists: its Git id is ${sum}, not ${file.gitSha1}`);
  }
}

async function digest(hash: Hash, path: string): Promise<string> {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason instanceof Error ? signal.reason : new Error('stopped'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
