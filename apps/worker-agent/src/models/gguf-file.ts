import { factsOf, type FileFacts, unreadable } from './file-facts.js';
import { BadHeader, GgufHeader } from './gguf-header.js';
import { ReadOnly } from './read-only.js';

/** Holds the header of a small model; a large one's is read in steps of the second. */
const FIRST_BYTES = 64 * 1024;
const STEP_BYTES = 2 * 1024 * 1024;
/** One value must fit into so much. */
const MOST_STEP_BYTES = 64 * 1024 * 1024;

/** First pieces that are not in use: one each for ten thousand files would keep the collector busy. */
const pieces: Buffer[] = [];
const MOST_PIECES = 32;

/**
 * The header of one GGUF file; what is not asked for is not read, as far as the format lets one step over it.
 * @param bytes the file's size when it was found.
 * @throws what the system says when the file cannot be opened or read.
 */
export async function readGguf(path: string, bytes: number): Promise<FileFacts> {
  if (bytes === 0) return unreadable('the file is empty');
  const file = await ReadOnly.open(path);
  const first = pieces.pop() ?? Buffer.allocUnsafeSlow(FIRST_BYTES);
  try {
    return await readPieces(file, bytes, first);
  } catch (error) {
    if (!(error instanceof BadHeader)) throw error;
    return unreadable(`the header cannot be read: ${error.message}`);
  } finally {
    file.close();
    if (pieces.length < MOST_PIECES) pieces.push(first);
  }
}

async function readPieces(file: ReadOnly, bytes: number, first: Buffer): Promise<FileFacts> {
  const header = new GgufHeader(bytes);
  let buffer = first;
  let step = buffer.length;
  for (;;) {
    const piece = await file.read(buffer, Math.min(step, bytes - header.at), header.at);
    if (header.at === 0 && piece.toString('latin1', 0, 4) !== 'GGUF') {
      return unreadable('it is no GGUF: the file does not begin with "GGUF"');
    }
    // It became shorter since its size was asked.
    if (piece.length === 0) return unreadable('the file ends within its header');
    const moved = header.take(piece);
    if (header.done) break;
    step = moved ? STEP_BYTES : Math.max(STEP_BYTES, step * 4);
    if (step > MOST_STEP_BYTES) throw new BadHeader('one value in it is longer than any engine reads');
    if (step > buffer.length) buffer = Buffer.allocUnsafe(step);
  }
  const { result } = header;
  if (result.dataStart > bytes) return unreadable('the file ends within its header');
  return factsOf(result, bytes);
}
