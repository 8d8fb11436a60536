import { readTemplate, anyOf, type TemplateFacts } from './chat-template.js';
import type { FactValue, ParsedHeader, Scalar } from './file-facts.js';
import { BadHeader, GgufValues, MOST_TEXT, SHORT, SIZES, TYPE } from './gguf-values.js';

export { BadHeader } from './gguf-values.js';

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
const DEFAULT_ALIGNMENT = 32;
const HEAD_BYTES = 24;

const TEMPLATE = 'tokenizer.chat_template';

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
  private readonly from: GgufValues;
  private keysLeft = -1;
  private tensorsLeft = 0;
  private readonly skips: Skip[] = [];
  private kept = 0;
  private readonly values: Record<string, FactValue> = {};
  private readonly templates: TemplateFacts[] = [];
  private readonly tensors: ParsedHeader['tensors'][number][] = [];

  constructor(private readonly fileBytes: number) {
    this.from = new GgufValues(fileBytes);
  }

  /**
   * Takes the bytes from `at` on, as far as they are there.
   * @returns false when it got nowhere: the next item is longer than the piece, a longer one is wanted.
   * @throws BadHeader
   */
  take(piece: Buffer): boolean {
    const start = this.at;
    this.from.begin(piece, start);
    try {
      while (!this.done) {
        this.item();
        this.at = start + this.from.position;
      }
    } catch (error) {
      if (error !== SHORT) throw error;
      if (start + piece.length >= this.fileBytes) throw new BadHeader('the file ends within its header');
    }
    if (this.at > MOST_HEADER_BYTES) {
      throw new BadHeader(`it is longer than ${MOST_HEADER_BYTES / 1024 / 1024} MiB`);
    }
    return this.at > start;
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
    const { piece } = this.from;
    if (piece.length < HEAD_BYTES) throw SHORT;
    const version = piece.readUInt32LE(4);
    if (version === 0x02000000 || version === 0x03000000) {
      throw new BadHeader('its numbers are written for big-endian machines');
    }
    if (version !== 2 && version !== 3)
      throw new BadHeader(`version ${version} of GGUF is none that engines read`);
    this.from.position = 8;
    const tensors = this.from.u64();
    const keys = this.from.u64();
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
    const key = this.from.text(MOST_KEY_BYTES, 'a key');
    const type = this.from.u32();
    if (type === TYPE.array) {
      const of = this.from.u32();
      const count = this.from.u64();
      this.from.checkArray(of, count);
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
      for (let i = 0; i < count; i++) list.push(this.from.scalar(of));
      this.kept += count;
      this.set(key, list);
    } else if (type === TYPE.text && key.startsWith(TEMPLATE)) {
      const length = this.from.textLength();
      const template = this.from.utf8(length, length);
      if (key === TEMPLATE || key.startsWith(`${TEMPLATE}.`)) this.templates.push(readTemplate(template));
      this.set(key, template.slice(0, MOST_TEXT));
    } else this.set(key, this.from.scalar(type));
  }

  private set(key: string, value: FactValue): void {
    // The one name that would not become a key of its own.
    if (key !== '__proto__') this.values[key] = value;
  }

  private tensor(): void {
    const name = this.from.text(MOST_NAME_BYTES, "a tensor's name");
    const dimensions = this.from.u32();
    if (dimensions > MOST_DIMENSIONS) throw new BadHeader(`tensor ${name} claims ${dimensions} dimensions`);
    const shape: number[] = [];
    for (let i = 0; i < dimensions; i++) shape.push(this.from.u64());
    this.tensors.push({ name, shape, type: this.from.u32(), offset: this.from.u64() });
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
      this.from.position += bytes * top.left;
      this.skips.pop();
      return;
    }
    if (top.type === TYPE.array) {
      const of = this.from.u32();
      const count = this.from.u64();
      this.from.checkArray(of, count);
      if (this.skips.length >= MOST_DEPTH)
        throw new BadHeader(`arrays lie more than ${MOST_DEPTH} deep in it`);
      top.left -= 1;
      this.skips.push({ type: of, left: count });
      return;
    }
    top.left = this.from.skipTexts(top.left);
  }
}
