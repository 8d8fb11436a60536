import { field, numberField, putVarint, varintSize } from './wire.js';

/** `ReadResp` with an event, the hot message: the stored record wrapped, nothing re-encoded. */
export function eventFrame(record: Buffer, position: number): Buffer {
  const inner = 1 + varintSize(record.length) + record.length + 1 + varintSize(position);
  const out = Buffer.allocUnsafeSlow(1 + varintSize(inner) + inner);
  let at = putVarint(out, putVarint(out, 0, 0x0a), inner);
  at = putVarint(out, putVarint(out, at, 0x0a), record.length);
  out.set(record, at);
  putVarint(out, putVarint(out, at + record.length, 0x18), position);
  return out;
}

/** An event read through a link; `target` is absent when what the link names is gone. */
export function linkFrame(target: Buffer | undefined, link: Buffer, position: number): Buffer {
  const parts = [field(0x12, link), numberField(0x18, position)];
  if (target) parts.unshift(field(0x0a, target));
  return field(0x0a, Buffer.concat(parts));
}

export const confirmationFrame = (id: string): Buffer => field(0x12, field(0x0a, Buffer.from(id, 'utf8')));

export const checkpointFrame = (position: number): Buffer =>
  field(0x1a, Buffer.concat([numberField(0x08, position), numberField(0x10, position)]));

export const notFoundFrame = (stream: string): Buffer =>
  field(0x22, field(0x0a, field(0x1a, Buffer.from(stream, 'utf8'))));

export const CAUGHT_UP_FRAME: Buffer = field(0x42, Buffer.alloc(0));

/** The record with its id as two 64-bit halves, for clients that ask for structured UUIDs. */
export function withStructuredId(record: Buffer, id: string): Buffer {
  const hex = id.replaceAll('-', '');
  const half = (from: number) => signedVarint(BigInt(`0x${hex.slice(from, from + 16)}`));
  const structured = Buffer.concat([Buffer.from([0x08]), half(0), Buffer.from([0x10]), half(16)]);
  return Buffer.concat([field(0x0a, field(0x0a, structured)), record.subarray(40)]);
}

function signedVarint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
