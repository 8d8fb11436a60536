import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { WireReader } from './wire-reader.js';

/**
 * What the client reads of a `ReadResp` that holds an event. It looks like the generated class to the client, which
 * turns it into its own event; only the decoding is ours, because the generated one takes more of a core for an event
 * than all the rest of its way together.
 */
export class EventMessage {
  constructor(
    readonly record: RecordMessage,
    readonly commitPosition: number | undefined,
  ) {}
  hasEvent(): true {
    return true;
  }
  getEvent(): ReadEventMessage {
    return new ReadEventMessage(this.record, this.commitPosition);
  }
}

class ReadEventMessage {
  constructor(
    readonly record: RecordMessage,
    readonly commitPosition: number | undefined,
  ) {}
  hasEvent(): true {
    return true;
  }
  getEvent(): RecordMessage {
    return this.record;
  }
  hasLink(): false {
    return false;
  }
  hasCommitPosition(): boolean {
    return this.commitPosition !== undefined;
  }
  getCommitPosition(): number | undefined {
    return this.commitPosition;
  }
}

const EMPTY = Buffer.alloc(0);

class RecordMessage {
  id = '';
  stream: Buffer = EMPTY;
  revision = 0;
  commit = 0;
  prepare = 0;
  readonly metadata = new Map<string, string>();
  customMetadata: Buffer = EMPTY;
  data: Buffer = EMPTY;

  hasId(): boolean {
    return this.id !== '';
  }
  getId() {
    return { hasStructured: () => false, getString: () => this.id };
  }
  hasStreamIdentifier(): boolean {
    return this.stream.length > 0;
  }
  getStreamIdentifier() {
    return { getStreamName: () => this.stream };
  }
  getMetadataMap(): ReadonlyMap<string, string> {
    return this.metadata;
  }
  getStreamRevision(): number {
    return this.revision;
  }
  getCommitPosition(): number {
    return this.commit;
  }
  getPreparePosition(): number {
    return this.prepare;
  }
  getCustomMetadata_asU8(): Uint8Array {
    return this.customMetadata;
  }
  getData(): Uint8Array {
    return this.data;
  }
  getData_asU8(): Uint8Array {
    return this.data;
  }
}

/**
 * Decodes a `ReadResp` (streams.proto): ReadResp {event 1: ReadEvent}, ReadEvent {event 1: RecordedEvent, link 2,
 * commit_position 3 | no_position 4}, RecordedEvent {id 1, stream_identifier 2, stream_revision 3, prepare_position 4,
 * commit_position 5, metadata 6, custom_metadata 7, data 8}. Everything that is not a plain event goes to the
 * generated class: links, ids as numbers, numbers beyond 2^53, confirmations, checkpoints.
 */
export function readMessage(bytes: Buffer): streamsPb.ReadResp | EventMessage {
  if (bytes[0] === 0x0a) {
    const event = eventMessage(bytes);
    if (event) return event;
  }
  return streamsPb.ReadResp.deserializeBinary(bytes);
}

function eventMessage(bytes: Buffer): EventMessage | undefined {
  const outer = new WireReader(bytes, 1);
  const event = outer.message();
  if (outer.offset !== bytes.length) return undefined;
  let record: RecordMessage | undefined;
  let commitPosition: number | undefined;
  for (let tag = event.tag(); tag !== 0; tag = event.tag()) {
    if (tag === 0x0a) {
      record = recordMessage(event.message());
      if (!record) return undefined;
    } else if (tag === 0x18) commitPosition = event.varint();
    else if (tag === 0x22) event.chunk();
    else return undefined;
  }
  return record && new EventMessage(record, commitPosition);
}

function recordMessage(reader: WireReader): RecordMessage | undefined {
  const record = new RecordMessage();
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    switch (tag) {
      case 0x0a: {
        const id = reader.message();
        if (id.tag() !== 0x12) return undefined;
        record.id = id.text();
        break;
      }
      case 0x12: {
        const identifier = reader.message();
        if (identifier.tag() !== 0x1a) return undefined;
        record.stream = identifier.chunk();
        break;
      }
      case 0x18:
        record.revision = reader.varint();
        break;
      case 0x20:
        record.prepare = reader.varint();
        break;
      case 0x28:
        record.commit = reader.varint();
        break;
      case 0x32: {
        const entry = reader.message();
        if (entry.tag() !== 0x0a) return undefined;
        const key = entry.text();
        if (entry.tag() !== 0x12) return undefined;
        record.metadata.set(key, entry.text());
        break;
      }
      case 0x3a:
        record.customMetadata = reader.chunk();
        break;
      case 0x42:
        record.data = reader.chunk();
        break;
      default:
        return undefined;
    }
  }
  const exact = record.revision <= Number.MAX_SAFE_INTEGER && record.commit <= Number.MAX_SAFE_INTEGER;
  return exact ? record : undefined;
}
