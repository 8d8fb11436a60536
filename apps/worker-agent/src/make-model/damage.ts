import { open, stat, truncate, writeFile } from 'node:fs/promises';
import { seededRandom } from './random.js';

/**
 * Ways in which a file is spoilt, for tests of what must survive it.
 * `truncated`: half of the tensor data is missing. `header-cut`: it ends within the header. `bad-magic`: it is no
 * GGUF. `bad-version`: a version that does not exist. `wrong-tensor-size`: a tensor claims more than the file holds.
 * `garbage`: the magic, then random bytes. `empty`: no byte. `aborts`: two tokens have one text, on which
 * llama.cpp ends its process instead of failing.
 */
export const DAMAGES = [
  'truncated',
  'header-cut',
  'bad-magic',
  'bad-version',
  'wrong-tensor-size',
  'garbage',
  'empty',
  'aborts',
] as const;
export type Damage = (typeof DAMAGES)[number];

/** Spoils a GGUF of ours in place. */
export async function damage(file: string, kind: Damage): Promise<void> {
  const { size } = await stat(file);
  switch (kind) {
    case 'truncated':
      return truncate(file, Math.floor(size / 2));
    case 'header-cut':
      return truncate(file, Math.min(2000, Math.floor(size / 2)));
    case 'empty':
      return truncate(file, 0);
    case 'garbage':
      return writeFile(file, Buffer.concat([Buffer.from('GGUF'), seededRandom(7).bytes(64 * 1024)]));
    case 'bad-magic':
      return patch(file, 0, Buffer.from('GGML'));
    case 'bad-version':
      return patch(file, 4, Buffer.from([0xee, 0, 0, 0]));
    case 'wrong-tensor-size': {
      // After the name: the number of dimensions, then the first and the second; the second is the row count.
      const name = await find(file, 'output_norm.weight');
      return patch(file, name + 'output_norm.weight'.length + 4, u64(1 << 30));
    }
    case 'aborts':
      return patch(file, await find(file, '<0x41>'), Buffer.from('<0x42>'));
  }
}

async function find(file: string, text: string): Promise<number> {
  const handle = await open(file, 'r');
  try {
    const head = Buffer.alloc(1 << 20);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    const at = head.subarray(0, bytesRead).indexOf(text);
    if (at < 0) throw new Error(`${file} has no "${text}" in its header.`);
    return at;
  } finally {
    await handle.close();
  }
}

async function patch(file: string, at: number, bytes: Buffer): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.write(bytes, 0, bytes.length, at);
  } finally {
    await handle.close();
  }
}

function u64(value: number): Buffer {
  const b = Buffer.alloc(8);
  b.writeBigUInt64LE(BigInt(value));
  return b;
}
