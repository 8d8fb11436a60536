/**
 * The few primitives of protobuf's encoding that the hot messages need. Written by hand because the general library
 * takes more of a core for one event than SQLite does.
 */

export const varintSize = (value: number): number => {
  let size = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) size++;
  return size;
};

/** Writes an unsigned integer up to 2^53 and answers the offset behind it. */
export function putVarint(target: Uint8Array, offset: number, value: number): number {
  let rest = value;
  while (rest >= 0x80000000) {
    target[offset++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  while (rest >= 128) {
    target[offset++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  target[offset++] = rest;
  return offset;
}

/** Walks over one message; `tag()` answers 0 at its end. */
export class WireReader {
  offset: number;
  constructor(
    readonly bytes: Buffer,
    start = 0,
    readonly end = bytes.length,
  ) {
    this.offset = start;
  }

  tag(): number {
    return this.offset >= this.end ? 0 : this.varint();
  }

  /** Exact up to 2^53; beyond, the nearest double, which no revision or position of this node reaches. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.offset >= this.end) throw new RangeError('the message ends inside a number');
      const byte = this.bytes[this.offset++] as number;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new RangeError('a number is longer than ten bytes');
  }

  /** The start and the end of a length-delimited field, whose content is then skipped. */
  span(): readonly [number, number] {
    const length = this.varint();
    const start = this.offset;
    if (start + length > this.end) throw new RangeError('the message ends inside a field');
    this.offset = start + length;
    return [start, this.offset];
  }

  chunk(): Buffer {
    const [start, end] = this.span();
    return this.bytes.subarray(start, end);
  }

  text(): string {
    const [start, end] = this.span();
    return this.bytes.toString('utf8', start, end);
  }

  message(): WireReader {
    const [start, end] = this.span();
    return new WireReader(this.bytes, start, end);
  }

  skip(tag: number): void {
    switch (tag & 7) {
      case 0:
        this.varint();
        return;
      case 1:
        this.offset += 8;
        return;
      case 2:
        this.span();
        return;
      case 5:
        this.offset += 4;
        return;
      default:
        throw new RangeError(`unknown wire type ${tag & 7}`);
    }
  }
}

/** A length-delimited field: tag, length, content. */
export function field(tag: number, content: Uint8Array): Buffer {
  const head = varintSize(tag) + varintSize(content.length);
  const out = Buffer.allocUnsafe(head + content.length);
  out.set(content, putVarint(out, putVarint(out, 0, tag), content.length));
  return out;
}

/** An unsigned integer field. */
export function numberField(tag: number, value: number): Buffer {
  const out = Buffer.allocUnsafe(varintSize(tag) + varintSize(value));
  putVarint(out, putVarint(out, 0, tag), value);
  return out;
}
