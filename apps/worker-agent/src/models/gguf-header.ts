import { readTemplate, anyOf, type TemplateFacts } from './chat-template.js';
import type { FactValue, ParsedHeader, Scalar } from './file-facts.js';

/**
 * Reads a GGUF header from pieces of its file: magic and version, counts, typed key/value pairs, the tensor table. What
 * no one asks for (the vocabulary) is stepped over, not kept. No length in the file is believed: each is held against
 * the file's size and against a bound of ours, so that work and memory stay in proportion to bytes that are there.
 */

/** Of a whole header: the largest vocabularies with their merges take some 30 MiB. */
const MOST_HEADER_BYTES = 256 * 1024 * 1024;
const MOST_KEYS = 65_536;
const MOST_TENSORS = 262_144;
/** The format's own bound on a key. */
const MOST_KEY_BYTES = 65_535;
const MOST_NAME_BYTES = 1024;
const MOST_DIMENSIONS = 8;
const MOST_DEPTH = 8;
/** An array of more values is kept as its length, as is every one of the tokenizer's. */
const MOST_KEPT_IN_ARRAY = 1024;
/** Of all arrays of a file together. */
const MOST_KEPT = 65_536;
const MOST_TEXT = 256;
/** More than the bytes of so many UTF-16 units. */
const TEXT_BYTES = MOST_TEXT * 4;
const DEFAULT_ALIGNMENT = 32;
const HEAD_BYTES = 24;

const TYPE = { text: 8, array: 9 } as const;
/** Bytes of each value type of a fixed size, by type number. */
const SIZES: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
const TEMPLATE = 'tokenizer.chat_template';

/** The file is at fault; its message says how, to be read after "the header cannot be read: ". */
export class BadHeader extends Error {}
/** The piece at hand ends before the item does. */
class Short extends Error {}
const SHORT = new Short();

/** Values of an array that are yet to be passed over; one inside another for arrays of arrays. */
interface Skip {
  readonly type: number;
  left: number;
}

export class GgufHeader {
  /** Where in the file the next piece must begin. */
  at = 0;
  /** The whole header was read: `result` has it. */
  done = false;
  private piece: Buffer = Buffer.alloc(0);
  /** Where in the file the piece begins. */
  private start = 0;
  private position = 0;
  private keysLeft = -1;
  private tensorsLeft = 0;
  private readonly skips: Skip[] = [];
  private kept = 0;
  private readonly values: Record<string, FactValue> = {};
  private readonly templates: TemplateFacts[] = [];
  private readonly tensors: ParsedHeader['tensors'][number][] = [];

  constructor(private readonly fileBytes: number) {}

  /**
   * Takes the bytes from `at` on, as far as they are there.
   * @returns false when it got nowhere: the next item is longer than the piece, a longer one is wanted.
   * @throws BadHeader
   */
  take(piece: Buffer): boolean {
    this.piece = piece;
    this.start = this.at;
    this.position = 0;
    try {
      while (!this.done) {
        this.item();
        this.at = this.start + this.position;
      }
    } catch (error) {
      if (error !== SHORT) throw error;
      if (this.start + piece.length >= this.fileBytes) throw new BadHeader('the file ends within its header');
    }
    if (this.at > MOST_HEADER_BYTES) {
      throw new BadHeader(`it is longer than ${MOST_HEADER_BYTES / 1024 / 1024} MiB`);
    }
    return this.at > this.start;
  }

  get result(): ParsedHeader {
    const template = anyOf(this.templates);
    return {
      values: this.values,
      tensors: this.tensors,
      dataStart: this.dataStart(),
      ...(template === undefined ? {} : { template }),
    };
  }

  private dataStart(): number {
    const { 'general.alignment': alignment = DEFAULT_ALIGNMENT } = this.values;
    if (typeof alignment !== 'number' || !Number.isInteger(alignment) || alignment <= 0) {
      throw new BadHeader(`it names the alignment ${JSON.stringify(alignment)}`);
    }
    return Math.ceil(this.at / alignment) * alignment;
  }

  /** One step that can be taken whole or not at all. */
  private item(): void {
    if (this.keysLeft < 0) this.head();
    else if (this.skips.length > 0) this.skip();
    else if (this.keysLeft > 0) {
      this.pair();
      this.keysLeft -= 1;
    } else if (this.tensorsLeft > 0) {
      this.tensor();
      this.tensorsLeft -= 1;
    }
    this.done = this.keysLeft === 0 && this.tensorsLeft === 0 && this.skips.length === 0;
  }

  private head(): void {
    if (this.piece.length < HEAD_BYTES) throw SHORT;
    const version = this.piece.readUInt32LE(4);
    if (version === 0x02000000 || version === 0x03000000) {
      throw new BadHeader('its numbers are written for big-endian machines');
    }
    if (version !== 2 && version !== 3)
      throw new BadHeader(`version ${version} of GGUF is none that engines read`);
    this.position = 8;
    const tensors = this.u64();
    const keys = this.u64();
    // A tensor takes 24 bytes and a pair 13, whatever they say.
    if (tensors * 24 > this.fileBytes || keys * 13 > this.fileBytes) {
      throw new BadHeader(`it claims ${tensors} tensors and ${keys} keys in ${this.fileBytes} bytes`);
    }
    if (tensors > MOST_TENSORS || keys > MOST_KEYS) {
      throw new BadHeader(
        `it claims ${tensors} tensors and ${keys} keys; more than ${MOST_TENSORS} and ${MOST_KEYS} are not read`,
      );
    }
    this.tensorsLeft = tensors;
    this.keysLeft = keys;
  }

  private pair(): void {
    const key = this.text(MOST_KEY_BYTES, 'a key');
    const type = this.u32();
    if (type === TYPE.array) {
      const of = this.u32();
      const count = this.u64();
      this.checkArray(of, count);
      const keep =
        !key.startsWith('tokenizer.') &&
        count <= MOST_KEPT_IN_ARRAY &&
        this.kept + count <= MOST_KEPT &&
        of !== TYPE.array;
      if (!keep) {
        this.set(key, { length: count });
        this.skips.push({ type: of, left: count });
        return;
      }
      const list: Scalar[] = [];
      for (let i = 0; i < count; i++) list.push(this.scalar(of));
      this.kept += count;
      this.set(key, list);
    } else if (type === TYPE.text && key.startsWith(TEMPLATE)) {
      const length = this.textLength();
      const template = this.utf8(length, length);
      if (key === TEMPLATE || key.startsWith(`${TEMPLATE}.`)) this.templates.push(readTemplate(template));
      this.set(key, template.slice(0, MOST_TEXT));
    } else this.set(key, this.scalar(type));
  }

  private set(key: string, value: FactValue): void {
    // The one name that would not become a key of its own.
    if (key !== '__proto__') this.values[key] = value;
  }

  private tensor(): void {
    const name = this.text(MOST_NAME_BYTES, "a tensor's name");
    const dimensions = this.u32();
    if (dimensions > MOST_DIMENSIONS) throw new BadHeader(`tensor ${name} claims ${dimensions} dimensions`);
    const shape: number[] = [];
    for (let i = 0; i < dimensions; i++) shape.push(this.u64());
    this.tensors.push({ name, shape, type: this.u32(), offset: this.u64() });
  }

  /** Steps over values of the innermost array that was begun, as many as the piece holds. */
  private skip(): void {
    const top = this.skips.at(-1);
    if (top === undefined) return;
    if (top.left === 0) {
      this.skips.pop();
      return;
    }
    const bytes = SIZES[top.type];
    if (bytes !== undefined) {
      this.position += bytes * top.left;
      this.skips.pop();
      return;
    }
    if (top.type === TYPE.array) {
      const of = this.u32();
      const count = this.u64();
      this.checkArray(of, count);
      if (this.skips.length >= MOST_DEPTH)
        throw new BadHeader(`arrays lie more than ${MOST_DEPTH} deep in it`);
      top.left -= 1;
      this.skips.push({ type: of, left: count });
      return;
    }
    const { piece } = this;
    let { position } = this;
    for (; top.left > 0 && position + 8 <= piece.length; top.left--) {
      const high = piece.readUInt32LE(position + 4);
      const length = high === 0 ? piece.readUInt32LE(position) : Infinity;
      if (length > this.left(position + 8)) throw tooLong(length);
      position += 8 + length;
    }
    // A text may end beyond the piece: the next one is read from there.
    const moved = position > this.position;
    this.position = position;
    if (top.left > 0 && !moved) throw SHORT;
  }

  private scalar(type: number): Scalar {
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

  private checkArray(of: number, count: number): void {
    const least = of === TYPE.text ? 8 : of === TYPE.array ? 12 : SIZES[of];
    if (least === undefined) throw new BadHeader(`it has a list of type ${of}, which does not exist`);
    if (count * least > this.left(this.position)) {
      throw new BadHeader(`it claims a list of ${count} values, which the file cannot hold`);
    }
  }

  private text(most: number, what: string): string {
    const length = this.textLength();
    if (length > most) throw new BadHeader(`${what} in it claims ${length} bytes`);
    return shared(this.utf8(length, length));
  }

  private textLength(): number {
    const length = this.u64();
    if (length > this.left(this.position)) throw tooLong(length);
    return length;
  }

  /** Steps over `length` bytes and decodes the first `wanted` of them. */
  private utf8(length: number, wanted: number): string {
    const from = this.position;
    if (from + length > this.piece.length) throw SHORT;
    this.position += length;
    return this.piece.toString('utf8', from, from + Math.min(length, wanted));
  }

  /** Bytes of the file from a position in the piece on. */
  private left(position: number): number {
    return this.fileBytes - this.start - position;
  }

  private u32(): number {
    if (this.position + 4 > this.piece.length) throw SHORT;
    const value = this.piece.readUInt32LE(this.position);
    this.position += 4;
    return value;
  }

  /** Beyond 2^53 it is not exact, and too large for anything that is checked. */
  private u64(): number {
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
