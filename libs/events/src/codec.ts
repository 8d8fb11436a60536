import type { BerthEvent, EventMetadata, LogPosition, Recorded } from '#domain/events/index.js';
import { formatBytes, MIB } from '#domain/units.js';
import type { NewEvent } from './event-log.js';
import { CURRENT_VERSIONS, type JsonObject, upcast, VERSIONS } from './upcast.js';

/** The log's limit for one append, metadata included; what passes here passes every server. */
export const MAX_APPEND_BYTES = MIB;

/** An event as it goes over the wire: serialised once, whatever happens to it on the way. */
export interface EncodedEvent {
  readonly id: string;
  readonly type: string;
  /** JSON text in UTF-8. */
  readonly data: Buffer;
  readonly metadata: Buffer;
}

/** An event as text, before bytes are made of it. */
export interface EventText {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

export interface Writer {
  /** `api:<apiId>`, `agent:<workerId>`, `cli`. */
  readonly by: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function eventText(item: NewEvent, writer: Writer): EventText {
  const metadata: EventMetadata = {
    $correlationId: item.cause.correlationId,
    $causationId: item.cause.causationId,
    at: item.at ?? new Date(writer.now()).toISOString(),
    by: writer.by,
    schemaVersion: CURRENT_VERSIONS[item.event.type],
  };
  return {
    id: item.id,
    type: item.event.type,
    data: JSON.stringify(item.event.data),
    metadata: JSON.stringify(metadata),
  };
}

export function encodeEvent(item: NewEvent, writer: Writer): EncodedEvent {
  const { id, type, data, metadata } = eventText(item, writer);
  return { id, type, data: Buffer.from(data), metadata: Buffer.from(metadata) };
}

/** Bytes that the server counts: data, metadata and two for each character of the type. */
export const countedBytes = (type: string, metadataBytes: number, dataBytes: number): number =>
  dataBytes + metadataBytes + 2 * type.length;

export const encodedBytes = (event: EncodedEvent): number =>
  countedBytes(event.type, event.metadata.length, event.data.length);

/** Why an event of so many bytes can never be appended; undefined when it can. */
export const tooLargeAlone = (
  { type, id }: Pick<EventText, 'type' | 'id'>,
  bytes: number,
): string | undefined =>
  bytes > MAX_APPEND_BYTES
    ? `${type} ${id} has ${formatBytes(bytes)}; an event may have at most ${formatBytes(MAX_APPEND_BYTES)}. Leave out part of its working.`
    : undefined;

/** Why these events cannot be one append; undefined when they can. */
export function refusalOf(events: readonly EncodedEvent[]): string | undefined {
  if (events.length === 0) return 'An append needs at least one event; none was given.';
  let total = 0;
  for (const event of events) {
    const bytes = encodedBytes(event);
    const tooLarge = tooLargeAlone(event, bytes);
    if (tooLarge !== undefined) return tooLarge;
    total += bytes;
  }
  return total > MAX_APPEND_BYTES
    ? `${events.length} events have ${formatBytes(total)} together; one append may have at most ${formatBytes(MAX_APPEND_BYTES)}. Append them in parts.`
    : undefined;
}

/** What the client hands out for one recorded event, as far as it is used. */
export interface RawRecorded {
  readonly id: string;
  readonly streamId: string;
  readonly revision: bigint;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  readonly created: Date;
  readonly position?: LogPosition | undefined;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);

const text = (value: unknown, otherwise: string): string => (typeof value === 'string' ? value : otherwise);

/** Reads recorded events; what it cannot read is skipped with one warning per type and reason. */
export class Decoder {
  readonly #warn: (message: string) => void;
  readonly #versions: typeof VERSIONS;
  readonly #warned = new Set<string>();

  constructor(warn: (message: string) => void, versions = VERSIONS) {
    this.#warn = warn;
    this.#versions = versions;
  }

  /** @returns undefined for an event that is not Berth's, or that this version cannot read. */
  decode<E extends BerthEvent>(raw: RawRecorded): Recorded<E> | undefined {
    if (raw.type.startsWith('$')) return undefined;
    if (!isObject(raw.data)) return this.#skip(raw, 'its data is no JSON object');
    const written = isObject(raw.metadata) ? raw.metadata : {};
    const version = typeof written['schemaVersion'] === 'number' ? written['schemaVersion'] : 1;
    const current = upcast(raw.type, version, raw.data, this.#versions);
    if (!current.ok) {
      return this.#skip(
        raw,
        {
          'unknown-type': 'this version of Berth does not know the type',
          'newer-version': `it has version ${version}, written by a newer Berth: upgrade this one`,
          'no-step': `nothing reads version ${version} any more`,
        }[current.why],
      );
    }
    const metadata: EventMetadata = {
      $correlationId: text(written['$correlationId'], ''),
      $causationId: text(written['$causationId'], ''),
      at: typeof written['at'] === 'string' ? written['at'] : raw.created.toISOString(),
      by: text(written['by'], 'unknown'),
      schemaVersion: version,
    };
    return {
      // The table of versions and its fixtures stand for the shape: data of a known type at the current version.
      event: { type: raw.type, data: current.data } as unknown as E,
      id: raw.id,
      stream: raw.streamId,
      revision: Number(raw.revision),
      position: raw.position ?? { commit: 0n, prepare: 0n },
      metadata,
    };
  }

  #skip(raw: RawRecorded, why: string): Recorded<never> | undefined {
    const key = `${raw.type} ${why}`;
    if (!this.#warned.has(key)) {
      this.#warned.add(key);
      this.#warn(
        `Events of type ${raw.type} are skipped: ${why}. First seen at ${raw.streamId}, revision ${raw.revision}.`,
      );
    }
    return undefined;
  }
}
