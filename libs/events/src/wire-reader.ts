/** Walks over one protobuf message; `tag()` answers 0 at its end. Throws RangeError when the message is cut. */
export class WireReader {
  constructor(
    readonly bytes: Buffer,
    public offset = 0,
    readonly end = bytes.length,
  ) {}

  tag(): number {
    return this.offset >= this.end ? 0 : this.varint();
  }

  /** Exact up to 2^53, else the nearest double. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.offset >= this.end) break;
      const byte = this.bytes[this.offset++] as number;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new RangeError('the message ends inside a number');
  }

  /** The bytes of a length-delimited field, not copied. */
  chunk(): Buffer {
    const length = this.varint();
    const start = this.offset;
    this.offset = start + length;
    if (this.offset > this.end) throw new RangeError('the message ends inside a field');
    return this.bytes.subarray(start, this.offset);
  }

  text(): string {
    const length = this.varint();
    const start = this.offset;
    this.offset = start + length;
    if (this.offset > this.end) throw new RangeError('the message ends inside a field');
    return this.bytes.toString('utf8', start, this.offset);
  }

  message(): WireReader {
    const length = this.varint();
    const start = this.offset;
    this.offset = start + length;
    if (this.offset > this.end) throw new RangeError('the message ends inside a field');
    return new WireReader(this.bytes, start, this.offset);
  }
}
