import { invalid, NodeError } from '../errors.js';
import type { WireExpectation } from './expectation.js';
import type { ProposedEvent } from './record.js';
import { putVarint, varintSize, WireReader } from './wire.js';

export interface BatchOptions {
  readonly stream: string;
  readonly expected: WireExpectation;
  /** The writer's own clock, ms since 1970; undefined when it set none. */
  readonly deadlineMs: number | undefined;
}

/** One message of the BatchAppend call. */
export interface BatchChunk {
  /** The UUID message as it came, echoed in the answer. */
  readonly correlation: Buffer;
  readonly options: BatchOptions | undefined;
  readonly events: readonly ProposedEvent[];
  /** Set when an event lacks a type or content type, or has an id that is none: the whole append is refused. */
  readonly fault: NodeError | undefined;
  readonly isFinal: boolean;
}

const EMPTY = Buffer.alloc(0);

export function decodeBatchChunk(bytes: Buffer): BatchChunk {
  const reader = new WireReader(bytes);
  let correlation: Buffer = EMPTY;
  let options: BatchOptions | undefined;
  const events: ProposedEvent[] = [];
  let fault: NodeError | undefined;
  let isFinal = false;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x0a) correlation = reader.chunk();
    else if (tag === 0x12) options = decodeOptions(reader.message());
    else if (tag === 0x1a) {
      const event = decodeProposed(reader.message());
      if (event instanceof NodeError) fault ??= event;
      else events.push(event);
    } else if (tag === 0x20) isFinal = reader.varint() !== 0;
    else reader.skip(tag);
  }
  return { correlation, options, events, fault, isFinal };
}

function decodeOptions(reader: WireReader): BatchOptions {
  let stream = '';
  let expected: WireExpectation = 'any';
  let deadlineMs: number | undefined;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x0a) {
      const identifier = reader.message();
      for (let t = identifier.tag(); t !== 0; t = identifier.tag()) {
        if (t === 0x1a) stream = identifier.text();
        else identifier.skip(t);
      }
    } else if (tag === 0x10) expected = reader.varint();
    else if (tag === 0x1a || tag === 0x22 || tag === 0x2a) {
      reader.span();
      expected = tag === 0x1a ? 'no_stream' : tag === 0x22 ? 'any' : 'stream_exists';
    } else if (tag === 0x32) {
      const stamp = reader.message();
      deadlineMs = 0;
      for (let t = stamp.tag(); t !== 0; t = stamp.tag()) {
        if (t === 0x08) deadlineMs += stamp.varint() * 1000;
        else if (t === 0x10) deadlineMs += stamp.varint() / 1e6;
        else stamp.skip(t);
      }
    } else reader.skip(tag);
  }
  return { stream, expected, deadlineMs };
}

function decodeProposed(reader: WireReader): ProposedEvent | NodeError {
  let id = '';
  let type: string | undefined;
  let content: string | undefined;
  let data: Buffer = EMPTY;
  let customMetadata: Buffer = EMPTY;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x0a) id = decodeUuid(reader.message());
    else if (tag === 0x12) {
      const entry = reader.message();
      let key = '';
      let value = '';
      for (let t = entry.tag(); t !== 0; t = entry.tag()) {
        if (t === 0x0a) key = entry.text();
        else if (t === 0x12) value = entry.text();
        else entry.skip(t);
      }
      if (key === 'type') type = value;
      else if (key === 'content-type') content = value;
    } else if (tag === 0x1a) customMetadata = reader.chunk();
    else if (tag === 0x22) data = reader.chunk();
    else reader.skip(tag);
  }
  return proposed(id, type, content, data, customMetadata);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Checks what both append paths must check of an event. */
export function proposed(
  id: string,
  type: string | undefined,
  content: string | undefined,
  data: Uint8Array,
  customMetadata: Uint8Array,
): ProposedEvent | NodeError {
  if (!type || !content) {
    return new NodeError(
      { code: 'missing-metadata-property', required: ['type', 'content-type'] },
      `Required metadata property missing: an event needs type and content-type, this one has ${type ? 'no content-type' : 'no type'}.`,
    );
  }
  const lower = id.toLowerCase();
  if (!UUID.test(lower)) return invalid(`The event id '${id}' is no UUID.`);
  return { id: lower, type, json: content === 'application/json', data, customMetadata };
}

function decodeUuid(reader: WireReader): string {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x12) return reader.text();
    if (tag === 0x0a) return decodeStructured(reader.message());
    reader.skip(tag);
  }
  return '';
}

function decodeStructured(reader: WireReader): string {
  let most = 0n;
  let least = 0n;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const value = exactVarint(reader);
    if (tag === 0x08) most = value;
    else if (tag === 0x10) least = value;
  }
  return uuidOf(most, least);
}

export function uuidOf(most: bigint, least: bigint): string {
  const hex = [most, least].map((half) => BigInt.asUintN(64, half).toString(16).padStart(16, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function exactVarint(reader: WireReader): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = reader.bytes[reader.offset++] ?? 0;
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) break;
  }
  return value;
}

/** `BatchAppendResp` for an append that stands. */
export function batchSuccess(
  correlation: Buffer,
  stream: string,
  revision: number,
  position: number,
): Buffer {
  const name = Buffer.from(stream, 'utf8');
  const place = 2 * (1 + varintSize(position));
  const success = revision < 0 ? NO_STREAM.length : 1 + varintSize(revision) + 2 + place;
  const identifier = 1 + varintSize(name.length) + name.length;
  const size = 2 + correlation.length + 2 + success + 1 + varintSize(identifier) + identifier;
  const out = Buffer.allocUnsafe(size);
  let at = putVarint(out, putVarint(out, 0, 0x0a), correlation.length);
  out.set(correlation, at);
  at = putVarint(out, putVarint(out, at + correlation.length, 0x1a), success);
  if (revision < 0) {
    out.set(NO_STREAM, at);
    at += NO_STREAM.length;
  } else {
    at = putVarint(out, putVarint(out, at, 0x08), revision);
    at = putVarint(out, putVarint(out, at, 0x1a), place);
    at = putVarint(out, putVarint(out, at, 0x08), position);
    at = putVarint(out, putVarint(out, at, 0x10), position);
  }
  at = putVarint(out, putVarint(out, at, 0x22), identifier);
  at = putVarint(out, putVarint(out, at, 0x1a), name.length);
  out.set(name, at);
  return out;
}

/** Neither a revision nor a position. */
const NO_STREAM = Buffer.from([0x12, 0, 0x22, 0]);
