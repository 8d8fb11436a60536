import { crc32 } from 'node:zlib';
import type { EncodedEvent } from './codec.js';

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
/** A header is short; a longer line is damage. */
const MAX_HEADER_BYTES = 4096;

/** The file's bytes for these entries, as one buffer for one write. */
export function formatEntries(entries: readonly SpoolEntry[]): Buffer {
  const headers = entries.map(({ stream, event }) =>
    Buffer.from(
      `${MARK}00000000 ${event.metadata.length} ${event.data.length} ${event.id} ${event.type} ${JSON.stringify(stream)}\n`,
    ),
  );
  let total = 0;
  for (const [i, { event }] of entries.entries())
    total += (headers[i]?.length ?? 0) + event.metadata.length + event.data.length + 2;
  const out = Buffer.allocUnsafe(total);
  let at = 0;
  for (const [i, { event }] of entries.entries()) {
    const start = at;
    at += headers[i]?.copy(out, at) ?? 0;
    at += event.metadata.copy(out, at);
    out[at++] = NEWLINE;
    at += event.data.copy(out, at);
    out[at++] = NEWLINE;
    const sum = crc32(out.subarray(start + AFTER_SUM, at));
    out.write(sum.toString(16).padStart(8, '0'), start + SUM_AT, 'latin1');
  }
  return out;
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
