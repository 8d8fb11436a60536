import { crc32 } from 'node:zlib';
import { countedBytes, type EncodedEvent, type EventText } from './codec.js';

/** One event that waits for the log. */
export interface SpoolEntry {
  readonly stream: string;
  readonly event: EncodedEvent;
  /** Of the event, as the server counts; to be worked out where it is left out. */
  readonly eventBytes?: number;
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

/**
 * An event in the bytes that go to the file. The views of it that the log gets are made when it is sent: until then
 * thousands may wait, and what they hold is carried along by the collector.
 */
class WrittenEntry implements SpoolEntry {
  readonly stream: string;
  readonly eventBytes: number;
  readonly #id: string;
  readonly #type: string;
  readonly #bytes: Buffer;
  readonly #metadataAt: number;
  readonly #dataAt: number;
  readonly #end: number;

  constructor({ stream, event, metadataBytes, dataBytes }: SpoolText, bytes: Buffer, end: number) {
    const { id, type } = event;
    this.stream = stream;
    this.eventBytes = countedBytes(type, metadataBytes, dataBytes);
    this.#id = id;
    this.#type = type;
    this.#bytes = bytes;
    this.#end = end - 1;
    this.#dataAt = this.#end - dataBytes;
    this.#metadataAt = this.#dataAt - 1 - metadataBytes;
  }

  get event(): EncodedEvent {
    return {
      id: this.#id,
      type: this.#type,
      metadata: this.#bytes.subarray(this.#metadataAt, this.#dataAt - 1),
      data: this.#bytes.subarray(this.#dataAt, this.#end),
    };
  }
}

export function formatTexts(texts: readonly SpoolText[]): Formatted {
  let all = '';
  let total = 0;
  const ends: number[] = [];
  for (const { stream, event, metadataBytes, dataBytes } of texts) {
    const header = headerOf(stream, event.id, event.type, metadataBytes, dataBytes);
    all += `${header}${event.metadata}\n${event.data}\n`;
    // The parts before and after are counted: of the header only the stream's name can be more than ASCII.
    total += header.length + nameOf(stream).moreBytes + metadataBytes + dataBytes + 2;
    ends.push(total);
  }
  const bytes = Buffer.allocUnsafeSlow(total);
  bytes.write(all);
  const entries: SpoolEntry[] = [];
  let start = 0;
  for (const [i, text] of texts.entries()) {
    const end = ends[i] ?? total;
    writeSum(bytes, start, end);
    entries.push(new WrittenEntry(text, bytes, end));
    start = end;
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
): string => `${MARK}00000000 ${metadataBytes} ${dataBytes} ${id} ${type} ${nameOf(stream).json}\n`;

interface StreamName {
  readonly json: string;
  /** How many bytes it has beyond its characters. */
  readonly moreBytes: number;
}
const MOST_NAMES = 256;
const names = new Map<string, StreamName>();

/** The name of a stream as it stands in headers; kept, since those of a moment are few. */
function nameOf(stream: string): StreamName {
  let name = names.get(stream);
  if (!name) {
    const json = JSON.stringify(stream);
    name = { json, moreBytes: Buffer.byteLength(json) - json.length };
    if (names.size >= MOST_NAMES) names.clear();
    names.set(stream, name);
  }
  return name;
}

function writeSum(bytes: Buffer, start: number, end: number): void {
  const sum = crc32(bytes.subarray(start + AFTER_SUM, end));
  for (let digit = 0, rest = sum; digit < 8; digit += 1, rest >>>= 4) {
    const nibble = rest & 15;
    bytes[start + SUM_AT + 7 - digit] = nibble < 10 ? 0x30 + nibble : 0x57 + nibble;
  }
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
