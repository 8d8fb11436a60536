/** gRPC puts a flag byte and a length before every message. */
const HEAD_BYTES = 5;

export class MessageTooLarge extends Error {
  override readonly name = 'MessageTooLarge';
}
export class CompressedMessage extends Error {
  override readonly name = 'CompressedMessage';
}

/** Cuts what arrives into messages. A message that lies whole in one chunk is not copied. */
export class MessageReader {
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Bytes that the message at hand needs with its head; of an unread head, the head alone. */
  #needed = HEAD_BYTES;

  constructor(readonly largestBytes: number) {}

  /** Calls back with each message that is complete. Throws when one is too large or compressed. */
  take(chunk: Buffer, onMessage: (message: Buffer) => void): void {
    let bytes = chunk;
    if (this.#keptBytes > 0) {
      this.#kept.push(chunk);
      this.#keptBytes += chunk.length;
      if (this.#keptBytes < this.#needed) return;
      bytes = Buffer.concat(this.#kept, this.#keptBytes);
      this.#kept = [];
      this.#keptBytes = 0;
    }
    let at = 0;
    this.#needed = HEAD_BYTES;
    while (bytes.length - at >= HEAD_BYTES) {
      const length = bytes.readUInt32BE(at + 1);
      if (bytes[at] !== 0) throw new CompressedMessage('This node takes no compressed messages.');
      if (length > this.largestBytes) {
        throw new MessageTooLarge(
          `A message of ${length} bytes was sent; this node takes at most ${this.largestBytes}.`,
        );
      }
      if (bytes.length - at < HEAD_BYTES + length) {
        this.#needed = HEAD_BYTES + length;
        break;
      }
      const start = at + HEAD_BYTES;
      at = start + length;
      onMessage(bytes.subarray(start, at));
    }
    if (at === bytes.length) return;
    const rest = at === 0 ? bytes : bytes.subarray(at);
    this.#kept = [rest];
    this.#keptBytes = rest.length;
  }
}

/** Messages that wait for the end of the turn, so that they leave in one write. */
export class MessageBatch {
  #parts: Buffer[] = [];
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(message: Buffer): void {
    this.#parts.push(message);
    this.#bytes += HEAD_BYTES + message.length;
  }

  /** All of them with their heads; the batch is empty afterwards. */
  take(): Buffer {
    const out = Buffer.allocUnsafe(this.#bytes);
    let at = 0;
    for (const message of this.#parts) {
      out[at] = 0;
      out.writeUInt32BE(message.length, at + 1);
      out.set(message, at + HEAD_BYTES);
      at += HEAD_BYTES + message.length;
    }
    this.#parts = [];
    this.#bytes = 0;
    return out;
  }
}
