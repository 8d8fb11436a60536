import { change, query, type Change, type Query, type Sqlite } from './database.js';
import type { EventReader } from './event-reader.js';
import { baseStreamOf, isSoftDeleted } from './stream-metadata.js';
import type { StreamStates } from './stream-states.js';

export interface ScavengeReport {
  readonly removedEvents: number;
  readonly streams: number;
  readonly freedBytes: number;
}

const EVENTS_A_STEP = 500;
const STREAMS_A_STEP = 50;
const PAGES_A_STEP = 500;

/**
 * Removes what retention hides, in small transactions between the appends. Kept: the last event of every stream (its
 * revision must stay known), tombstones, and the newest metadata. Positions and revisions never move.
 */
export class Scavenger {
  readonly #metadataStreams: Query<[number, string]>;
  readonly #tombstoned: Query<[number, string]>;
  readonly #delete: Change;
  readonly #setRemoved: Change;
  readonly #keepPosition: Change;
  #running = false;

  constructor(
    readonly db: Sqlite,
    readonly states: StreamStates,
    readonly reader: EventReader,
    /** Runs a step within a transaction of the writer's. */
    readonly step: <T>(work: () => T) => Promise<T>,
    readonly nextPosition: () => number,
  ) {
    this.#metadataStreams = query(
      db,
      `select sid, name from streams where name > ? and name < '$%' order by name limit ${STREAMS_A_STEP}`,
    );
    this.#tombstoned = query(
      db,
      `select e.sid, s.name from events e indexed by tombstones join streams s on s.sid = e.sid
       where e.revision = 9223372036854775807 and e.sid > ? order by e.sid limit ${STREAMS_A_STEP}`,
    );
    this.#delete = change(
      db,
      `delete from events where position in (
         select position from events where sid = ? and revision < ? order by revision limit ${EVENTS_A_STEP})`,
    );
    this.#setRemoved = change(
      db,
      `update streams set removed = coalesce(
         (select min(revision) from events where sid = ?1 and revision < 9223372036854775807), ?2) where sid = ?1`,
    );
    this.#keepPosition = change(db, `insert or replace into node (key, value) values ('next-position', ?)`);
  }

  async run(): Promise<ScavengeReport> {
    if (this.#running) throw new Error('A scavenge is running already; wait for it to end.');
    this.#running = true;
    try {
      // Should the newest event go, its position must not be given again: checkpoints point at it.
      await this.step(() => this.#keepPosition.run([this.nextPosition()]));
      const before = this.#fileBytes();
      let removedEvents = 0;
      let streams = 0;
      for (const [sid, below] of this.#hidden()) {
        const removed = await this.#remove(sid, below);
        removedEvents += removed;
        if (removed > 0) streams++;
      }
      await this.#shrink();
      return { removedEvents, streams, freedBytes: Math.max(0, before - this.#fileBytes()) };
    } finally {
      this.#running = false;
    }
  }

  /** Streams with the first revision that is to stay. */
  *#hidden(): Generator<readonly [sid: number, below: number]> {
    for (let after = '$$'; ;) {
      const page = this.#metadataStreams.all([after]);
      const last = page.at(-1);
      if (!last) break;
      after = last[1];
      for (const [sid, name] of page) {
        const base = baseStreamOf(name);
        yield [sid, Math.max(0, this.states.get(name).last)];
        const state = this.states.get(base);
        if (state.sid !== 0 && !state.tombstoned) yield [state.sid, this.#firstKept(base)];
      }
    }
    for (let after = 0; ;) {
      const page = this.#tombstoned.all([after]);
      const last = page.at(-1);
      if (!last) return;
      after = last[0];
      for (const [sid, name] of page) {
        yield [sid, this.states.get(name).last + 1];
        const metadata = this.states.get(`$$${name}`);
        if (metadata.sid !== 0) yield [metadata.sid, metadata.last + 1];
      }
    }
  }

  #firstKept(stream: string): number {
    const { last } = this.states.get(stream);
    if (isSoftDeleted(this.states.metadata(stream))) return last;
    return Math.min(last, this.reader.visible(stream).first);
  }

  async #remove(sid: number, below: number): Promise<number> {
    let removed = 0;
    for (;;) {
      const changes = await this.step(() => {
        const count = this.#delete.run([sid, below]).changes;
        if (count > 0) this.#setRemoved.run([sid, below]);
        return count;
      });
      removed += changes;
      if (changes < EVENTS_A_STEP) return removed;
    }
  }

  /** Gives the freed pages back to the disk. */
  async #shrink(): Promise<void> {
    for (;;) {
      const [free = 0] = query<[number]>(this.db, 'pragma freelist_count').get([]) ?? [];
      if (free === 0) return;
      await this.step(() => this.db.exec(`pragma incremental_vacuum(${PAGES_A_STEP})`));
      const [left = 0] = query<[number]>(this.db, 'pragma freelist_count').get([]) ?? [];
      if (left >= free) return;
    }
  }

  #fileBytes(): number {
    const [pages = 0] = query<[number]>(this.db, 'pragma page_count').get([]) ?? [];
    const [size = 0] = query<[number]>(this.db, 'pragma page_size').get([]) ?? [];
    return pages * size;
  }
}
