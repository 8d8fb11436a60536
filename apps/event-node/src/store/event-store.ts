import { type WireExpectation } from '../protocol/expectation.js';
import { type ProposedEvent } from '../protocol/record.js';
import { openDatabase, query, type Sqlite } from './database.js';
import { EventReader } from './event-reader.js';
import { GroupCommit } from './group-commit.js';
import { KnownIds } from './known-ids.js';
import { StreamStates } from './stream-states.js';
import { StreamWriter, type Written } from './stream-writer.js';
import { Tail } from './tail.js';

export interface EventStoreOptions {
  readonly file: string;
  /** Called when the file turns out to be damaged while it is in use; the process must end. */
  readonly onDamage: (error: unknown) => void;
  readonly now?: () => number;
}

/** The log: one SQLite file, one writer, readers on the same connection. */
export class EventStore {
  readonly db: Sqlite;
  readonly states: StreamStates;
  readonly reader: EventReader;
  readonly tail: Tail;
  readonly #writer: StreamWriter;
  readonly #commits: GroupCommit;
  readonly #ids: KnownIds;

  constructor(options: EventStoreOptions) {
    const now = options.now ?? Date.now;
    this.db = openDatabase(options.file);
    this.states = new StreamStates(this.db);
    this.reader = new EventReader(this.db, this.states, now);
    this.#ids = new KnownIds(
      query(
        this.db,
        `select position, sid, revision, substr(record, 5, 36) from events
         where position < ? order by position desc limit ?`,
      ),
    );
    this.#writer = new StreamWriter(this.db, this.states, this.reader, this.#ids, now);
    this.tail = new Tail(this.reader.endPosition());
    this.#commits = new GroupCommit(this.db, {
      committed: () => this.tail.push(this.#writer.takeWritten()),
      rolledBack: () => {
        this.states.clear();
        this.#ids.reload();
        this.#writer.reload();
      },
      damaged: options.onDamage,
    });
  }

  append(stream: string, expected: WireExpectation, events: readonly ProposedEvent[]): Promise<Written> {
    return this.#commits.submit(() => this.#writer.append(stream, expected, events));
  }

  softDelete(stream: string, expected: WireExpectation): Promise<Written> {
    return this.#commits.submit(() => this.#writer.softDelete(stream, expected));
  }

  tombstone(stream: string, expected: WireExpectation): Promise<Written> {
    return this.#commits.submit(() => this.#writer.tombstone(stream, expected));
  }

  /** Appends that wait for their commit. */
  get waiting(): number {
    return this.#commits.waiting;
  }

  /** Where the next event would stand. */
  get nextPosition(): number {
    return this.#writer.nextPosition;
  }

  /** Commits what waits, and refuses what comes. */
  async drain(): Promise<void> {
    await this.#commits.close();
  }

  /** Commits what waits and closes the file. */
  async close(): Promise<void> {
    await this.#commits.close();
    this.#ids.stop();
    query(this.db, 'pragma wal_checkpoint(truncate)').all([]);
    this.db.close();
  }
}
