import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { LOWEST, lowerThread } from '#runtime/priority.js';
import { Sha256, type Sha256State } from './sha256.js';

/** Thread that hashes one file after another, at the lowest priority, so that no call notices. */
export interface HashRequest {
  readonly file: string;
  readonly bytes: number;
  readonly modifiedMs: number;
  /** Where an earlier run stopped. */
  readonly state?: Sha256State;
}
export type HashAnswer =
  | { readonly kind: 'at'; readonly file: string; readonly state: Sha256State }
  | { readonly kind: 'done'; readonly file: string; readonly sha256: string }
  /** Changed, gone or unreadable meanwhile: a later scan asks again. */
  | { readonly kind: 'left'; readonly file: string; readonly why: string };

const CHUNK_BYTES = 4 * 1024 * 1024;
/** So often it says how far it is. */
const TELL_BYTES = 256 * 1024 * 1024;
/** A breath between two chunks leaves the disk to others. */
const BREATH_MS = 1;

/** Its one number is 1 while an engine loads: the disk and the processor are the load's then. */
const paused = new Int32Array(workerData as SharedArrayBuffer);

const port = parentPort;
lowerThread(LOWEST);

async function hash(request: HashRequest): Promise<HashAnswer> {
  const { file, bytes, modifiedMs } = request;
  const left = (why: string): HashAnswer => ({ kind: 'left', file, why });
  const handle = openSync(file, 'r');
  try {
    const same = () => {
      const now = fstatSync(handle);
      return now.size === bytes && now.mtimeMs === modifiedMs;
    };
    if (!same()) return left('it changed since it was found');
    const sha = new Sha256(request.state);
    const chunk = new Uint8Array(CHUNK_BYTES);
    let at = request.state?.bytes ?? 0;
    let told = at;
    for (;;) {
      Atomics.wait(paused, 0, 1);
      let filled = 0;
      while (filled < chunk.length) {
        const read = readSync(handle, chunk, filled, chunk.length - filled, at + filled);
        if (read === 0) break;
        filled += read;
      }
      at += filled;
      if (filled < chunk.length) {
        const sha256 = sha.digest(chunk.subarray(0, filled));
        return same() && at === bytes ? { kind: 'done', file, sha256 } : left('it changed while it was read');
      }
      sha.update(chunk);
      if (at - told >= TELL_BYTES) {
        told = at;
        port?.postMessage({ kind: 'at', file, state: sha.state } satisfies HashAnswer);
      }
      await sleep(BREATH_MS);
    }
  } finally {
    closeSync(handle);
  }
}

port?.on('message', (request: HashRequest) => {
  void hash(request)
    .catch((error: unknown): HashAnswer => ({ kind: 'left', file: request.file, why: String(error) }))
    .then((answer) => port.postMessage(answer));
});
