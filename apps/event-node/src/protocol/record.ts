import { putVarint, varintSize, WireReader } from './wire.js';

/**
 * Events are stored as the protocol's `RecordedEvent`, so that a read copies bytes and encodes nothing. The fields
 * stand in a fixed order (id, stream, type, created, then the rest): stream, type and time are found by offset.
 */

/** The revision of a tombstone: 2^63-1, as the nearest double. */
export const TOMBSTONE_REVISION = Number(9223372036854775807n);
const TOMBSTONE_VARINT = Buffer.from('ffffffffffffffff7f', 'hex');

export interface ProposedEvent {
  /** Lower-case UUID with dashes. */
  readonly id: string;
  readonly type: string;
  readonly json: boolean;
  readonly data: Uint8Array;
  readonly customMetadata: Uint8Array;
}

const ID_HEAD = Buffer.from([0x0a, 38, 0x12, 36]);
const ID_END = 40;
const TYPE_KEY = Buffer.from('\x0a\x04type\x12', 'latin1');
const CREATED_HEAD = Buffer.from('\x32\x1c\x0a\x07created\x12\x11', 'latin1');
const CREATED_DIGITS = 17;
const contentType = (value: string) => {
  const key = Buffer.from(`\x0a\x0ccontent-type\x12${String.fromCharCode(value.length)}${value}`, 'latin1');
  return Buffer.concat([Buffer.from([0x32, key.length]), key]);
};
const JSON_TYPE = contentType('application/json');
const BYTES_TYPE = contentType('application/octet-stream');

/** Field 2 of a record, the same for every event of a stream. */
export function streamField(stream: string): Buffer {
  const name = Buffer.from(stream, 'utf8');
  const inner = 1 + varintSize(name.length) + name.length;
  const out = Buffer.allocUnsafe(1 + varintSize(inner) + inner);
  let at = putVarint(out, putVarint(out, 0, 0x12), inner);
  at = putVarint(out, putVarint(out, at, 0x1a), name.length);
  out.set(name, at);
  return out;
}

export function encodeRecord(
  event: ProposedEvent,
  streamPart: Buffer,
  revision: number,
  position: number,
  createdMs: number,
): Buffer {
  const type = Buffer.from(event.type, 'utf8');
  const typeValue = TYPE_KEY.length + varintSize(type.length) + type.length;
  const content = event.json ? JSON_TYPE : BYTES_TYPE;
  const dead = revision === TOMBSTONE_REVISION;
  const { data, customMetadata: meta } = event;
  const size =
    ID_END +
    streamPart.length +
    (1 + varintSize(typeValue) + typeValue) +
    (CREATED_HEAD.length + CREATED_DIGITS) +
    content.length +
    (1 + (dead ? TOMBSTONE_VARINT.length : varintSize(revision))) +
    2 * (1 + varintSize(position)) +
    (meta.length ? 1 + varintSize(meta.length) + meta.length : 0) +
    (data.length ? 1 + varintSize(data.length) + data.length : 0);
  const out = Buffer.allocUnsafeSlow(size);
  out.set(ID_HEAD, 0);
  out.write(event.id, 4, 36, 'latin1');
  let at = ID_END;
  const put = (bytes: Uint8Array) => {
    out.set(bytes, at);
    at += bytes.length;
  };
  put(streamPart);
  at = putVarint(out, putVarint(out, at, 0x32), typeValue);
  put(TYPE_KEY);
  at = putVarint(out, at, type.length);
  put(type);
  put(CREATED_HEAD);
  // 100-ns ticks since 1970 do not fit a double, so the last four digits are text.
  out.write(`${createdMs}0000`.padStart(CREATED_DIGITS, '0'), at, CREATED_DIGITS, 'latin1');
  at += CREATED_DIGITS;
  put(content);
  at = putVarint(out, at, 0x18);
  if (dead) put(TOMBSTONE_VARINT);
  else at = putVarint(out, at, revision);
  at = putVarint(out, putVarint(out, at, 0x20), position);
  at = putVarint(out, putVarint(out, at, 0x28), position);
  if (meta.length) {
    at = putVarint(out, putVarint(out, at, 0x3a), meta.length);
    put(meta);
  }
  if (data.length) {
    at = putVarint(out, putVarint(out, at, 0x42), data.length);
    put(data);
  }
  return out;
}

export const recordId = (record: Buffer): string => record.toString('latin1', 4, ID_END);

const streamSpan = (record: Buffer): readonly [number, number] => {
  const reader = new WireReader(record, ID_END + 1);
  reader.varint();
  reader.offset++;
  return reader.span();
};

export function recordStream(record: Buffer): string {
  const [start, end] = streamSpan(record);
  return record.toString('utf8', start, end);
}

const typeSpan = (record: Buffer): readonly [number, number] => {
  const reader = new WireReader(record, streamSpan(record)[1] + 1);
  reader.varint();
  reader.offset += TYPE_KEY.length;
  return reader.span();
};

export function recordType(record: Buffer): string {
  const [start, end] = typeSpan(record);
  return record.toString('utf8', start, end);
}

export function recordCreatedMs(record: Buffer): number {
  const start = typeSpan(record)[1] + CREATED_HEAD.length;
  return Number(record.toString('latin1', start, start + CREATED_DIGITS - 4));
}

export interface RecordBody {
  readonly revision: number;
  readonly position: number;
  readonly data: Buffer;
}

/** The rest of a record, for links, metadata, verification and salvage. Throws RangeError when it is cut. */
export function recordBody(record: Buffer): RecordBody {
  let revision = 0;
  let position = 0;
  let data: Buffer = Buffer.alloc(0);
  const reader = new WireReader(record);
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x18) revision = reader.varint();
    else if (tag === 0x28) position = reader.varint();
    else if (tag === 0x42) data = reader.chunk();
    else reader.skip(tag);
  }
  return { revision, position, data };
}
