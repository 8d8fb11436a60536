import { crc32 } from 'node:zlib';
import type { EncodedEvent, EventText } from './codec.js';

/** One event that waits for the log. */
export interface SpoolEntry {
  readonly stream: string;
  readonly event: EncodedEvent;
}

/**
 * A record is text that a person can read, with lengths so that nothing is parsed twice:
 * `B1 <crc32> <metadata bytes> <data bytes> <id> <type> <stream as JSON>⏎<metadata>⏎<data>⏎`.
 * The sum covers everything after it, the last line feed too.
 */
const MARK = 'B1 ';
const HEADER = /^B1 ([0-9a-f]{8}) (\d+) (\d+) ([0-9a-f-]{36}) (\S+) (".*")$/s;
const SUM_AT = MARK.length;
const AFTER_SUM = SUM_AT + 9;
const NEWLINE = 10;
const LINE_END = Buffer.from('\n');
/** A header is short; a longer line is damage. */
const MAX_HEADER_BYTES = 4096;

/** One event as it comes to the spool, not yet bytes; lengths in bytes of UTF-8. */
export interface SpoolText {
  readonly stream: string;
  readonly event: EventText;
  readonly dataBytes: number;
  readonly metadataBytes: number;
}

export interface Formatted {
  /** For one write to the file. */
  readonly bytes: Buffer;
  /** Views into the bytes: an event is written out once, for the file and for the log. */
  readonly entries: readonly SpoolEntry[];
}

export function formatTexts(texts: readonly SpoolText[]): Formatted {
  const headers = texts.map(({ stream, event: { id, type }, metadataBytes, dataBytes }) =>
    headerOf(stream, id, type, metadataBytes, dataBytes),
  );
  let total = 0;
  for (const [i, { metadataBytes, dataBytes }] of texts.entries())
    total += Buffer.byteLength(headers[i] ?? '') + metadataBytes + dataBytes + 2;
  const bytes = Buffer.allocUnsafeSlow(total);
  const entries: SpoolEntry[] = [];
  let at = 0;
  for (const [i, { stream, event, metadataBytes, dataBytes }] of texts.entries()) {
    const start = at;
    const metadataAt = start + bytes.write(headers[i] ?? '', start);
    const dataAt = metadataAt + metadataBytes + 1;
    at = dataAt + dataBytes + 1;
    bytes.write(event.metadata, metadataAt);
    bytes[dataAt - 1] = NEWLINE;
    bytes.write(event.data, dataAt);
    bytes[at - 1] = NEWLINE;
    writeSum(bytes, start, at);
    const metadata = bytes.subarray(metadataAt, metadataAt + metadataBytes);
    const data = bytes.subarray(dataAt, dataAt + dataBytes);
    entries.push({ stream, event: { id: event.id, type: event.type, metadata, data } });
  }
  return { bytes, entries };
}

/** The file's bytes for entries that are bytes already. */
export function formatEntries(entries: readonly SpoolEntry[]): Buffer {
  return Buffer.concat(
    entries.map(({ stream, event: { id, type, metadata, data } }) => {
      const header = Buffer.from(headerOf(stream, id, type, metadata.length, data.length));
      const record = Buffer.concat([header, metadata, LINE_END, data, LINE_END]);
      writeSum(record, 0, record.length);
      return record;
    }),
  );
}

const headerOf = (
  stream: string,
  id: string,
  type: string,
  metadataBytes: number,
  dataBytes: number,
): string => `${MARK}00000000 ${metadataBytes} ${dataBytes} ${id} ${type} ${JSON.stringify(stream)}\n`;

function writeSum(bytes: Buffer, start: number, end: number): void {
  const sum = crc32(bytes.subarray(start + AFTER_SUM, end));
  bytes.write(sum.toString(16).padStart(8, '0'), start + SUM_AT, 'latin1');
}

export interface ParsedSpool {
  readonly entries: readonly SpoolEntry[];
  /** Stretches of bytes that are no sound record, in order. */
  readonly damaged: readonly { readonly from: number; readonly to: number }[];
}

/** Reads a segment; what is damaged is passed over up to the next sound record. */
export function parseEntries(bytes: Buffer): ParsedSpool {
  const entries: SpoolEntry[] = [];
  const damaged: { from: number; to: number }[] = [];
  let at = 0;
  let damageFrom: number | undefined;
  while (at < bytes.length) {
    const record = parseRecord(bytes, at);
    if (record) {
      if (damageFrom !== undefined) damaged.push({ from: damageFrom, to: at });
      damageFrom = undefined;
      entries.push(record.entry);
      at = record.end;
      continue;
    }
    damageFrom ??= at;
    // Not at line feeds only: the one before a sound record may be what was damaged. The sum tells a record from its look.
    const next = bytes.indexOf(MARK, at + 1);
    at = next < 0 ? bytes.length : next;
  }
  if (damageFrom !== undefined) damaged.push({ from: damageFrom, to: bytes.length });
  return { entries, damaged };
}

function parseRecord(bytes: Buffer, start: number): { entry: SpoolEntry; end: number } | undefined {
  const lineEnd = bytes.subarray(start, start + MAX_HEADER_BYTES).indexOf(NEWLINE);
  if (lineEnd < 0) return undefined;
  const match = HEADER.exec(bytes.toString('utf8', start, start + lineEnd));
  if (!match) return undefined;
  const [, sum = '', metadataLength, dataLength, id = '', type = '', streamJson = ''] = match;
  const metadataAt = start + lineEnd + 1;
  const dataAt = metadataAt + Number(metadataLength) + 1;
  const end = dataAt + Number(dataLength) + 1;
  if (end > bytes.length) return undefined;
  if (crc32(bytes.subarray(start + AFTER_SUM, end)) !== Number.parseInt(sum, 16)) return undefined;
  return {
    entry: {
      stream: JSON.parse(streamJson) as string,
      event: {
        id,
        type,
        metadata: bytes.subarray(metadataAt, dataAt - 1),
        data: bytes.subarray(dataAt, end - 1),
      },
    },
    end,
  };
}
