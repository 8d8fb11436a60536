import type { Scalar } from './file-facts.js';

/** Of a text so many UTF-16 units are kept. */
export const MOST_TEXT = 256;
/** More than the bytes of so many. */
const TEXT_BYTES = MOST_TEXT * 4;

export const TYPE = { text: 8, array: 9 } as const;
/** Bytes of each value type of a fixed size, by type number. */
export const SIZES: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

/** The file is at fault; its message says how, to be read after "the header cannot be read: ". */
export class BadHeader extends Error {}
/** The piece at hand ends before the item does. */
class Short extends Error {}
export const SHORT = new Short();

/**
 * The values of a GGUF file in a piece of it, one after another. Every length is held against what is left of the file, so
 * that none is believed. Throws `SHORT` where the piece ends within a value.
 */
export class GgufValues {
  piece: Buffer = Buffer.alloc(0);
  /** Where in the file the piece begins. */
  start = 0;
  /** Where in the piece the next value is. */
  position = 0;

  constructor(private readonly fileBytes: number) {}

  begin(piece: Buffer, start: number): void {
    this.piece = piece;
    this.start = start;
    this.position = 0;
  }

  /** Steps over texts, as many as the piece holds. @returns how many are left */
  skipTexts(count: number): number {
    const { piece } = this;
    let { position } = this;
    let left = count;
    for (; left > 0 && position + 8 <= piece.length; left--) {
      const high = piece.readUInt32LE(position + 4);
      const length = high === 0 ? piece.readUInt32LE(position) : Infinity;
      if (length > this.left(position + 8)) throw tooLong(length);
      position += 8 + length;
    }
    // A text may end beyond the piece: the next one is read from there.
    const moved = position > this.position;
    this.position = position;
    if (left > 0 && !moved) throw SHORT;
    return left;
  }

  scalar(type: number): Scalar {
    const { piece, position } = this;
    if (type === TYPE.text) {
      const length = this.textLength();
      return this.utf8(length, TEXT_BYTES).slice(0, MOST_TEXT);
    }
    const bytes = SIZES[type];
    if (bytes === undefined) throw new BadHeader(`it has a value of type ${type}, which does not exist`);
    if (position + bytes > piece.length) throw SHORT;
    this.position += bytes;
    switch (type) {
      case 0:
        return piece.readUInt8(position);
      case 1:
        return piece.readInt8(position);
      case 2:
        return piece.readUInt16LE(position);
      case 3:
        return piece.readInt16LE(position);
      case 4:
        return piece.readUInt32LE(position);
      case 5:
        return piece.readInt32LE(position);
      case 6:
        return piece.readFloatLE(position);
      case 7:
        return piece.readUInt8(position) !== 0;
      case 10:
        return piece.readUInt32LE(position) + piece.readUInt32LE(position + 4) * 2 ** 32;
      case 11:
        return piece.readUInt32LE(position) + piece.readInt32LE(position + 4) * 2 ** 32;
      default:
        return piece.readDoubleLE(position);
    }
  }

  checkArray(of: number, count: number): void {
    const least = of === TYPE.text ? 8 : of === TYPE.array ? 12 : SIZES[of];
    if (least === undefined) throw new BadHeader(`it has a list of type ${of}, which does not exist`);
    if (count * least > this.left(this.position)) {
      throw new BadHeader(`it claims a list of ${count} values, which the file cannot hold`);
    }
  }

  text(most: number, what: string): string {
    const length = this.textLength();
    if (length > most) throw new BadHeader(`${what} in it claims ${length} bytes`);
    return shared(this.utf8(length, length));
  }

  textLength(): number {
    const length = this.u64();
    if (length > this.left(this.position)) throw tooLong(length);
    return length;
  }

  /** Steps over `length` bytes and decodes the first `wanted` of them. */
  utf8(length: number, wanted: number): string {
    const from = this.position;
    if (from + length > this.piece.length) throw SHORT;
    this.position += length;
    return this.piece.toString('utf8', from, from + Math.min(length, wanted));
  }

  /** Bytes of the file from a position in the piece on. */
  left(position: number): number {
    return this.fileBytes - this.start - position;
  }

  u32(): number {
    if (this.position + 4 > this.piece.length) throw SHORT;
    const value = this.piece.readUInt32LE(this.position);
    this.position += 4;
    return value;
  }

  /** Beyond 2^53 it is not exact, and too large for anything that is checked. */
  u64(): number {
    if (this.position + 8 > this.piece.length) throw SHORT;
    const low = this.piece.readUInt32LE(this.position);
    const high = this.piece.readUInt32LE(this.position + 4);
    // A sum with nothing would be kept as a number with a fraction, which takes three times the memory.
    const value = high === 0 ? low : low + high * 2 ** 32;
    this.position += 8;
    return value;
  }
}

/**
 * Keys and names are the same few thousand in all files: one copy of each is kept. Beyond a bound they are not looked
 * for any more, as in a folder of files that are made up.
 */
const MOST_SHARED = 16_384;
const sharing = new Map<string, string>();
function shared(text: string): string {
  const known = sharing.get(text);
  if (known !== undefined) return known;
  if (sharing.size < MOST_SHARED) sharing.set(text, text);
  return text;
}

const tooLong = (length: number) =>
  new BadHeader(
    `it claims a text of ${Number.isFinite(length) ? length : 'more than 4 GiB of'} bytes, which the file cannot hold`,
  );
