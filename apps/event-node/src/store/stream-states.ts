import { recordBody, streamField, TOMBSTONE_REVISION } from '../protocol/record.js';
import { change, query, type Change, type Query, type Sqlite } from './database.js';
import { Lru } from './lru.js';
import {
  isMetadataStream,
  metadataStreamOf,
  NO_METADATA,
  parseMetadata,
  type StreamMetadata,
} from './stream-metadata.js';

/** What the node knows of one stream; the writer changes it in place. */
export interface StreamState {
  readonly name: string;
  /** 0 until the first event is written. */
  sid: number;
  /** The last revision, -1 for none; a tombstone does not count. */
  last: number;
  /** The position of the last event, -1 for none. */
  lastPosition: number;
  tombstoned: boolean;
  /** Field 2 of this stream's records. */
  readonly recordPart: Buffer;
}

const CACHED_STREAMS = 20_000;
/** A metadata stream shows its newest event alone. */
const METADATA_OF_METADATA: StreamMetadata = { ...NO_METADATA, maxCount: 1 };

/** Loads and remembers the state of streams; bounded, and dropped when a commit fails. */
export class StreamStates {
  readonly #states = new Lru<string, StreamState>(CACHED_STREAMS);
  readonly #metadata = new Lru<string, StreamMetadata>(CACHED_STREAMS);
  readonly #find: Query<[number]>;
  readonly #newest: Query<[number, number]>;
  readonly #newestRecord: Query<[Buffer]>;
  readonly #create: Change;
  /** Grows whenever any metadata changes: open subscriptions then look at their rights again. */
  metadataVersion = 0;

  constructor(db: Sqlite) {
    this.#find = query(db, 'select sid from streams where name = ?');
    this.#newest = query(
      db,
      'select revision, position from events where sid = ? order by revision desc limit 2',
    );
    this.#newestRecord = query(db, 'select record from events where sid = ? order by revision desc limit 1');
    this.#create = change(db, 'insert into streams (name) values (?)');
  }

  get(name: string): StreamState {
    const known = this.#states.get(name);
    if (known) return known;
    const state = this.#load(name);
    this.#states.set(name, state);
    return state;
  }

  #load(name: string): StreamState {
    const state: StreamState = {
      name,
      sid: 0,
      last: -1,
      lastPosition: -1,
      tombstoned: false,
      recordPart: streamField(name),
    };
    const row = this.#find.get([name]);
    if (!row) return state;
    [state.sid] = row;
    for (const [revision, position] of this.#newest.all([state.sid])) {
      if (revision >= TOMBSTONE_REVISION) {
        state.tombstoned = true;
        state.lastPosition = position;
      } else {
        state.last = Math.max(state.last, revision);
        if (!state.tombstoned) state.lastPosition = Math.max(state.lastPosition, position);
      }
    }
    return state;
  }

  /** Gives the stream its number; within a transaction. */
  ensureSid(state: StreamState): number {
    if (state.sid === 0) state.sid = Number(this.#create.run([state.name]).lastInsertRowid);
    return state.sid;
  }

  metadata(name: string): StreamMetadata {
    if (isMetadataStream(name)) return METADATA_OF_METADATA;
    const known = this.#metadata.get(name);
    if (known) return known;
    const meta = this.get(metadataStreamOf(name));
    const row = meta.sid === 0 ? undefined : this.#newestRecord.get([meta.sid]);
    const parsed = row ? parseMetadata(recordBody(row[0]).data.toString('utf8')) : NO_METADATA;
    this.#metadata.set(name, parsed);
    return parsed;
  }

  /** After an event was written to the metadata stream of `name`. */
  putMetadata(name: string, text: string): void {
    this.#metadata.set(name, parseMetadata(text));
    this.metadataVersion++;
  }

  clear(): void {
    this.#states.clear();
    this.#metadata.clear();
    this.metadataVersion++;
  }
}
