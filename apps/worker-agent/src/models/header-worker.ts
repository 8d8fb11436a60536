import { open } from 'node:fs/promises';
import { parentPort } from 'node:worker_threads';
import { gguf } from '@huggingface/gguf';
import { factsOf, type FileFacts } from './file-facts.js';
import { readSafetensors } from './safetensors-header.js';

/**
 * Thread that parses headers: a file may be anything, and its parser may be slow or hungry on it. It runs under a
 * heap limit and a deadline (header-reader.ts), and the agent's own thread goes on.
 */
export interface HeaderRequest {
  readonly id: number;
  readonly file: string;
  /** A file in a cache has no ending to tell it by: whoever found it knows. */
  readonly format: 'gguf' | 'safetensors';
}
export interface HeaderAnswer {
  readonly id: number;
  readonly facts: FileFacts;
}

const unreadable = (why: string): FileFacts => ({ values: {}, tensors: [], mainType: 'none', broken: why });

/** @returns why the file is no GGUF, from its first 24 bytes; undefined when the rest is worth parsing. */
async function firstLook(file: string): Promise<{ bytes: number; broken?: string }> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const head = Buffer.alloc(24);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    if (size === 0) return { bytes: size, broken: 'the file is empty' };
    if (bytesRead < 4 || head.toString('latin1', 0, 4) !== 'GGUF') {
      return { bytes: size, broken: 'it is no GGUF: the file does not begin with "GGUF"' };
    }
    if (bytesRead < head.length) return { bytes: size, broken: 'the file ends within its header' };
    // The parser takes a table that claims more than the file holds for a long run of empty entries.
    const tensors = head.readBigUInt64LE(8);
    const values = head.readBigUInt64LE(16);
    const version = head.readUInt32LE(4);
    if (version === 2 || version === 3) {
      if (tensors * 24n > BigInt(size) || values * 13n > BigInt(size)) {
        return {
          bytes: size,
          broken: `the header claims ${tensors} tensors and ${values} keys in ${size} bytes`,
        };
      }
    }
    return { bytes: size };
  } finally {
    await handle.close();
  }
}

async function safetensors(file: string): Promise<FileFacts> {
  const handle = await open(file, 'r');
  try {
    return await readSafetensors(handle, (await handle.stat()).size);
  } finally {
    await handle.close();
  }
}

async function read(file: string, format: HeaderRequest['format']): Promise<FileFacts> {
  if (format === 'safetensors') return safetensors(file);
  const { bytes, broken } = await firstLook(file);
  if (broken !== undefined) return unreadable(broken);
  try {
    const parsed = await gguf(file, { allowLocalFile: true });
    if (Number(parsed.tensorDataOffset) > bytes) return unreadable('the file ends within its header');
    return factsOf({ ...parsed, metadata: { ...parsed.metadata } }, bytes);
  } catch (error) {
    return unreadable(`the header cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

parentPort?.on('message', (request: HeaderRequest) => {
  void read(request.file, request.format)
    .catch((error: unknown) => ({
      ...unreadable(`it cannot be opened: ${error instanceof Error ? error.message : String(error)}`),
      passing: true as const,
    }))
    .then((facts) => parentPort?.postMessage({ id: request.id, facts } satisfies HeaderAnswer));
});
