import { randomUUID } from 'node:crypto';
import { NodeError } from '../errors.js';
import type { WireExpectation } from '../protocol/expectation.js';
import {
  encodeRecord,
  recordCreatedMs,
  recordId,
  TOMBSTONE_REVISION,
  type ProposedEvent,
} from '../protocol/record.js';
import { change, query, type Change, type Sqlite } from './database.js';
import type { EventReader } from './event-reader.js';
import { checkExpectation, decideAppend, wrongVersion, type StreamFacts } from './expectation.js';
import type { RememberedEvent } from './id-memory.js';
import {
  baseStreamOf,
  isMetadataStream,
  isSoftDeleted,
  metadataStreamOf,
  SOFT_DELETE_METADATA,
} from './stream-metadata.js';
import type { StreamState, StreamStates } from './stream-states.js';
import { StoredEvent } from './tail.js';

export interface Written {
  /** The revision of the stream's last event of this append, -1 when the stream has none. */
  readonly revision: number;
  readonly position: number;
}

export interface EventIds {
  find(id: string, sid: number): RememberedEvent | undefined;
  remember(id: string, sid: number, revision: number, position: number): void;
}

/** Kept free between two positions, so that nobody takes a position plus one for the next event's. */
const POSITION_GAP = 32;

/** Everything that writes events; always within a transaction of the group commit, and refusing before it writes. */
export class StreamWriter {
  readonly #insert: Change;
  readonly #insertTombstone: Change;
  #written: StoredEvent[] = [];
  #nextPosition = 0;
  #lastCreatedMs = 0;

  constructor(
    readonly db: Sqlite,
    readonly states: StreamStates,
    readonly reader: EventReader,
    readonly ids: EventIds,
    readonly now: () => number,
  ) {
    this.#insert = change(db, 'insert into events (position, sid, revision, record) values (?, ?, ?, ?)');
    this.#insertTombstone = change(
      db,
      'insert into events (position, sid, revision, record) values (?, ?, 9223372036854775807, ?)',
    );
    this.reload();
  }

  /** Where the log ends, from the file; after a start, or when a commit failed. */
  reload(): void {
    this.#written = [];
    const floor = query<[number]>(this.db, `select value from node where key = 'next-position'`).get([]);
    const [newest] = this.reader.allBefore(Number.MAX_SAFE_INTEGER, 1);
    this.#nextPosition = Math.max(
      floor?.[0] ?? 0,
      newest ? newest.position + newest.record.length + POSITION_GAP : 0,
    );
    this.#lastCreatedMs = newest ? recordCreatedMs(newest.record) : 0;
  }

  get nextPosition(): number {
    return this.#nextPosition;
  }

  /** What was written since the last call. */
  takeWritten(): readonly StoredEvent[] {
    const written = this.#written;
    this.#written = [];
    return written;
  }

  append(stream: string, expected: WireExpectation, events: readonly ProposedEvent[]): Written {
    checkWritableName(stream);
    const state = this.states.get(stream);
    const facts = this.#facts(state);
    const decision = decideAppend(
      facts,
      expected,
      events.map((event) => event.id),
    );
    if (decision.kind === 'already-written') return decision;
    if (events.length === 0) return { revision: state.last, position: state.lastPosition };
    const first = state.last + 1;
    for (const event of events) this.#put(state, event);
    const written = { revision: state.last, position: state.lastPosition };
    if (isMetadataStream(stream)) this.#metadataWritten(baseStreamOf(stream), events);
    else if (facts.softDeleted) this.#putMetadata(stream, { $tb: first });
    return written;
  }

  softDelete(stream: string, expected: WireExpectation): Written {
    checkWritableName(stream);
    if (isMetadataStream(stream)) throw badName(`Metadata stream '${stream}' cannot be deleted.`);
    const state = this.states.get(stream);
    const facts = this.#facts(state);
    if (!facts.tombstoned && state.last < 0) throw wrongVersion(stream, expected, -1);
    checkExpectation(facts, expected);
    if (!facts.softDeleted) this.#putMetadata(stream, SOFT_DELETE_METADATA);
    const meta = this.states.get(metadataStreamOf(stream));
    return { revision: state.last, position: meta.lastPosition };
  }

  tombstone(stream: string, expected: WireExpectation): Written {
    checkWritableName(stream);
    if (isMetadataStream(stream)) throw badName(`Metadata stream '${stream}' cannot be deleted.`);
    const state = this.states.get(stream);
    checkExpectation(this.#facts(state), expected);
    this.#put(
      state,
      jsonEvent('$streamDeleted', '{}'),
      // The name is burnt: the greatest revision there is leaves no room behind it.
      TOMBSTONE_REVISION,
    );
    return { revision: TOMBSTONE_REVISION, position: state.lastPosition };
  }

  #facts(state: StreamState): StreamFacts {
    const { name } = state;
    // A metadata stream shares the fate of the stream it describes.
    const base = isMetadataStream(name) ? baseStreamOf(name) : name;
    const owner = base === name ? state : this.states.get(base);
    const { ids, reader, states } = this;
    return {
      stream: base,
      last: state.last,
      tombstoned: owner.tombstoned,
      softDeleted: base === name && isSoftDeleted(states.metadata(name)),
      get hasMetadata() {
        return base === name && states.get(metadataStreamOf(name)).last >= 0;
      },
      remembered: (id) => (state.sid === 0 ? undefined : ids.find(id, state.sid)),
      eventAt: (revision) => {
        const event = state.sid === 0 ? undefined : reader.event(state.sid, revision);
        return event && { id: recordId(event.record), position: event.position };
      },
    };
  }

  /** New metadata of a soft-deleted stream revives it empty: what was hidden stays hidden. */
  #metadataWritten(base: string, events: readonly ProposedEvent[]): void {
    const wasDeleted = isSoftDeleted(this.states.metadata(base));
    const text = Buffer.from(events.at(-1)?.data ?? '').toString('utf8');
    this.states.putMetadata(base, text);
    const metadata = this.states.metadata(base);
    const state = this.states.get(base);
    if (!wasDeleted || isSoftDeleted(metadata) || !metadata.document) return;
    if (metadata.truncateBefore <= state.last) {
      this.#putMetadata(base, { ...metadata.document, $tb: state.last + 1 });
    }
  }

  #putMetadata(stream: string, document: string | Readonly<Record<string, unknown>>): void {
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    this.#put(this.states.get(metadataStreamOf(stream)), jsonEvent('$metadata', text));
    this.states.putMetadata(stream, text);
  }

  #put(state: StreamState, event: ProposedEvent, revision = state.last + 1): void {
    const sid = this.states.ensureSid(state);
    const position = this.#nextPosition;
    // A clock that was set back must not make a later event look older: $maxAge relies on the order.
    const createdMs = Math.max(this.now(), this.#lastCreatedMs);
    const record = encodeRecord(event, state.recordPart, revision, position, createdMs);
    if (revision === TOMBSTONE_REVISION) {
      this.#insertTombstone.run([position, sid, record]);
      state.tombstoned = true;
    } else {
      this.#insert.run([position, sid, revision, record]);
      state.last = revision;
    }
    state.lastPosition = position;
    this.#lastCreatedMs = createdMs;
    this.#nextPosition = position + record.length + POSITION_GAP;
    this.ids.remember(event.id, sid, revision, position);
    this.#written.push(new StoredEvent(position, sid, revision, record));
  }
}

function jsonEvent(type: string, text: string): ProposedEvent {
  return {
    id: randomUUID(),
    type,
    json: true,
    data: Buffer.from(text, 'utf8'),
    customMetadata: Buffer.alloc(0),
  };
}

const badName = (message: string): NodeError => new NodeError({ code: 'bad-stream-name' }, message);

export function checkWritableName(stream: string): void {
  if (stream === '' || stream === '$$') throw badName(`The stream name '${stream}' is not valid.`);
  if (stream === '$all') throw badName("Nothing can be appended to '$all': it is the order of all streams.");
  if (stream.startsWith('$$$$')) {
    throw badName(`The stream name '${stream}' is not valid: metadata has no metadata of its own.`);
  }
}
