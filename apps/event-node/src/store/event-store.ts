import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WireExpectation } from '../protocol/expectation.js';
import { recordBody, type ProposedEvent } from '../protocol/record.js';
import type { BackupReport } from './backup.js';
import { openDatabase, query, type Sqlite } from './database.js';
import { EventReader } from './event-reader.js';
import { GroupCommit } from './group-commit.js';
import { Keeper, runInThread } from './keeper.js';
import { runJob, type KeeperJob } from './keeper-jobs.js';
import { KnownIds } from './known-ids.js';
import { Scavenger, type ScavengeReport } from './scavenger.js';
import { StreamStates } from './stream-states.js';
import { StreamWriter, type Written } from './stream-writer.js';
import { systemEvents } from './system-events.js';
import { Tail } from './tail.js';
import type { VerifyReport } from './verify.js';

export interface EventStoreOptions {
  readonly file: string;
  /** Called when the file turns out to be damaged while it is in use; the process must end. */
  readonly onDamage: (error: unknown) => void;
  readonly say: (message: string) => void;
  readonly now: () => number;
}

/** Sources that run without a build have no thread to start. */
const THREADS = fileURLToPath(import.meta.url).endsWith('.js');
/** A file up to this size is checked as a whole when it is opened; of a larger one the end. */
const CHECK_WHOLE_BYTES = 16 * 1024 * 1024;
const CHECKED_EVENTS = 200;

/** The log: one SQLite file, one writer, readers on the same connection. */
export class EventStore {
  readonly db: Sqlite;
  readonly states: StreamStates;
  readonly reader: EventReader;
  readonly tail: Tail;
  readonly #file: string;
  readonly #writer: StreamWriter;
  readonly #commits: GroupCommit;
  readonly #ids: KnownIds;
  readonly #keeper: Keeper;
  readonly #scavenger: Scavenger;

  /** Throws what `isDamage` knows when the file is not sound. */
  constructor({ file, now, onDamage, say }: EventStoreOptions) {
    this.#file = file;
    this.db = openDatabase(file);
    try {
      checkFile(this.db, file);
      this.states = new StreamStates(this.db);
      this.reader = new EventReader(this.db, this.states, now);
      checkEnd(this.reader);
      this.#ids = new KnownIds(
        query(
          this.db,
          `select position, sid, revision, substr(record, 5, 36) from events
           where position < ? order by position desc limit ?`,
        ),
      );
      this.#writer = new StreamWriter(this.db, this.states, this.reader, this.#ids, now);
      if (this.#writer.nextPosition === 0) this.#begin();
      this.tail = new Tail(this.reader.endPosition());
      this.#commits = new GroupCommit(this.db, {
        committed: () => this.tail.push(this.#writer.takeWritten()),
        rolledBack: () => {
          this.states.clear();
          this.#ids.reload();
          this.#writer.reload();
        },
        damaged: onDamage,
      });
      this.#scavenger = new Scavenger(
        this.db,
        this.states,
        this.reader,
        (work) => this.#commits.submit(work),
        () => this.#writer.nextPosition,
      );
      this.#keeper = new Keeper(file, this.db, THREADS, say);
    } catch (error) {
      this.db.close();
      throw error;
    }
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

  /** Where the next event would stand. */
  get nextPosition(): number {
    return this.#writer.nextPosition;
  }

  scavenge(): Promise<ScavengeReport> {
    return this.#scavenger.run();
  }

  /** Copies the log as it stands now, while appends go on. */
  async backup(folder: string): Promise<BackupReport> {
    return (await this.#job({ kind: 'backup', folder })) as BackupReport;
  }

  async verify(): Promise<VerifyReport> {
    return (await this.#job({ kind: 'verify' })) as VerifyReport;
  }

  /** Commits what waits, and refuses what comes. */
  async drain(): Promise<void> {
    await this.#commits.close();
  }

  /** Commits what waits and closes the file. */
  async close(): Promise<void> {
    await this.#commits.close();
    this.#ids.stop();
    await this.#keeper.stop();
    query(this.db, 'pragma wal_checkpoint(truncate)').all([]);
    this.db.close();
  }

  #job(job: KeeperJob): Promise<unknown> {
    if (THREADS) return runInThread(this.#file, job);
    return new Promise((resolve) => resolve(runJob(this.db, job, () => undefined)));
  }

  /** A new log begins with system events, as a real server's does. */
  #begin(): void {
    this.db.exec('begin immediate');
    for (const [stream, event] of systemEvents()) this.#writer.append(stream, 'no_stream', [event]);
    this.db.exec('commit');
    this.#writer.takeWritten();
  }
}

/** What SQLite would say at the first read of a torn page is better said before the node serves. */
function checkFile(db: Sqlite, file: string): void {
  if (statSync(file).size > CHECK_WHOLE_BYTES) return;
  const [line] = query<[string]>(db, 'pragma quick_check(1)').get([]) ?? [];
  if (line !== undefined && line !== 'ok') throw new DamagedLog(line);
}

function checkEnd(reader: EventReader): void {
  for (const event of reader.allBefore(Number.MAX_SAFE_INTEGER, CHECKED_EVENTS)) {
    try {
      if (recordBody(event.record).position !== event.position) {
        throw new DamagedLog(`the event at position ${event.position} says that it stands elsewhere`);
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new DamagedLog(`the event at position ${event.position} cannot be read: ${error.message}`);
    }
  }
}

/** Looks like SQLite's own error, so that both are treated alike. */
export class DamagedLog extends Error {
  override readonly name = 'DamagedLog';
  readonly code = 'SQLITE_CORRUPT';
}
