/** What is between two empty lines of an event stream. */
const LF_LF = Buffer.from('\n\n');
const CRLF_CRLF = Buffer.from('\r\n\r\n');

/**
 * Cuts a stream of chunks at frame ends. Only whole frames are given on, so that a frame can be left out, and an error
 * frame can follow, whatever way the engine's writes were cut; a chunk that ends with a frame costs two searches and no
 * copy.
 */
export class FrameCutter {
  #tail: Buffer | undefined;

  /** The whole frames that are in hand now: undefined when there is none yet. */
  push(chunk: Buffer): Buffer | undefined {
    const bytes = this.#tail ? Buffer.concat([this.#tail, chunk]) : chunk;
    const cut = lastFrameEnd(bytes);
    if (cut === bytes.length) {
      this.#tail = undefined;
      return bytes;
    }
    if (cut === 0) {
      this.#tail = bytes;
      return undefined;
    }
    this.#tail = bytes.subarray(cut);
    return bytes.subarray(0, cut);
  }

  /** What was never closed by an empty line. */
  get tail(): Buffer | undefined {
    return this.#tail;
  }
}

function lastFrameEnd(bytes: Buffer): number {
  const lf = bytes.lastIndexOf(LF_LF);
  const crlf = bytes.lastIndexOf(CRLF_CRLF);
  return Math.max(lf < 0 ? 0 : lf + 2, crlf < 0 ? 0 : crlf + 4);
}

/** The frames of bytes that hold whole frames only, each with the empty line that ends it. */
export function* frames(bytes: Buffer): Generator<Buffer> {
  let at = 0;
  while (at < bytes.length) {
    const end = nextFrameEnd(bytes, at);
    yield bytes.subarray(at, end);
    at = end;
  }
}

function nextFrameEnd(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(LF_LF, from);
  const crlf = bytes.indexOf(CRLF_CRLF, from);
  if (lf < 0 && crlf < 0) return bytes.length;
  if (crlf < 0 || (lf >= 0 && lf < crlf)) return lf + 2;
  return crlf + 4;
}

/** The data of a frame, its lines joined as the standard says; undefined when it has none (a comment). */
export function dataOf(frame: Buffer): string | undefined {
  let data: string | undefined;
  for (const line of frame.toString('utf8').split(/\r\n|\n|\r/)) {
    if (!line.startsWith('data:')) continue;
    const text = line.slice(line.startsWith('data: ') ? 6 : 5);
    data = data === undefined ? text : `${data}\n${text}`;
  }
  return data;
}
