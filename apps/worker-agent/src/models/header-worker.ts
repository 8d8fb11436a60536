import { parentPort } from 'node:worker_threads';
import { type FileFacts, notNow } from './file-facts.js';
import { ReadOnly } from './read-only.js';
import { readSafetensors } from './safetensors-header.js';

/**
 * Thread that parses long headers of safetensors files: their JSON is taken apart in one go, which may take a second
 * and a gigabyte. It runs under a heap limit and a deadline (header-reader.ts), and the agent's own thread goes on.
 */
export interface HeaderRequest {
  readonly id: number;
  readonly file: string;
  readonly bytes: number;
}
export interface HeaderAnswer {
  readonly id: number;
  readonly facts: FileFacts;
}

async function read(path: string, bytes: number): Promise<FileFacts> {
  const file = await ReadOnly.open(path);
  try {
    const facts = await readSafetensors(file, bytes);
    if (facts === 'long') throw new Error('it is longer than the format allows');
    return facts;
  } finally {
    file.close();
  }
}

parentPort?.on('message', ({ id, file, bytes }: HeaderRequest) => {
  void read(file, bytes)
    .catch((error: unknown) =>
      notNow(`it cannot be opened: ${error instanceof Error ? error.message : String(error)}`),
    )
    .then((facts) => parentPort?.postMessage({ id, facts } satisfies HeaderAnswer));
});
