const HEAD_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** Cuts what a connection brings into whole HTTP messages, with as little work as it takes. */
export class HttpCutter {
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Of the message under way, once its head is there: its whole length, or `chunked`. */
  #length: number | 'chunked' | undefined;

  /** The messages that are complete now, heads included. */
  push(chunk: Buffer): Buffer[] {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    const messages: Buffer[] = [];
    for (;;) {
      if (typeof this.#length === 'number' && this.#bytes < this.#length) return messages;
      if (this.#length === 'chunked' && !endsChunked(this.#parts)) return messages;
      const all = this.#parts.length === 1 && this.#parts[0] ? this.#parts[0] : Buffer.concat(this.#parts);
      this.#parts = [all];
      this.#length ??= lengthOf(all);
      if (this.#length === undefined) return messages;
      if (this.#length === 'chunked' && !endsChunked([all])) return messages;
      const end = this.#length === 'chunked' ? all.length : this.#length;
      if (all.length < end) return messages;
      messages.push(all.subarray(0, end));
      this.#length = undefined;
      this.#bytes = all.length - end;
      this.#parts = this.#bytes === 0 ? [] : [all.subarray(end)];
      if (this.#bytes === 0) return messages;
    }
  }
}

function lengthOf(bytes: Buffer): number | 'chunked' | undefined {
  const head = bytes.indexOf(HEAD_END);
  if (head < 0) return undefined;
  const text = bytes.toString('latin1', 0, head).toLowerCase();
  if (text.includes('transfer-encoding: chunked')) return 'chunked';
  const length = /content-length: *(\d+)/.exec(text)?.[1];
  return head + HEAD_END.length + Number(length ?? 0);
}

/** The last chunk ends the bytes: callers send one request at a time, so nothing follows it. */
function endsChunked(parts: readonly Buffer[]): boolean {
  const last = parts.at(-1);
  if (!last) return false;
  const tail = last.length >= LAST_CHUNK.length ? last : Buffer.concat(parts.slice(-2));
  return tail.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}
