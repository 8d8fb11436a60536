import { recordBody, recordCreatedMs, recordStream, TOMBSTONE_REVISION } from '../protocol/record.js';
import { messageOf } from '../errors.js';
import { query, type Sqlite } from './database.js';
import { baseStreamOf, isMetadataStream } from './stream-metadata.js';

export interface VerifyReport {
  readonly events: number;
  readonly streams: number;
  readonly endPosition: number;
  /** Sentences; empty when the log is sound. At most 100. */
  readonly faults: readonly string[];
}

const PAGE = 500;
const MOST_FAULTS = 100;

/**
 * Looks at everything that readers rely on: the file's own structure, one strict order of positions and times, records
 * that agree with their rows, and streams without gaps.
 */
export function verifyLog(db: Sqlite, progress: (message: string) => void = () => undefined): VerifyReport {
  const faults: string[] = [];
  const fault = (sentence: string) => {
    if (faults.length < MOST_FAULTS) faults.push(sentence);
  };
  // One read transaction: everything below sees the same moment.
  db.exec('begin');
  try {
    progress('checking the structure of the file');
    for (const [line] of query<[string]>(db, `pragma integrity_check(${MOST_FAULTS})`).all([])) {
      if (line !== 'ok') fault(`The file's structure is damaged: ${line}.`);
    }
    const walked = walk(db, fault, progress);
    progress('checking the streams for gaps');
    const streams = checkStreams(db, fault);
    return { ...walked, streams, faults };
  } finally {
    db.exec('rollback');
  }
}

function walk(
  db: Sqlite,
  fault: (sentence: string) => void,
  progress: (message: string) => void,
): { events: number; endPosition: number } {
  const page = query<[number, number, Buffer, string | null]>(
    db,
    `select e.position, e.revision, e.record, s.name from events e left join streams s on s.sid = e.sid
     where e.position > ? order by e.position limit ${PAGE}`,
  );
  let events = 0;
  let endPosition = -1;
  let free = 0;
  let createdMs = 0;
  for (;;) {
    const rows = page.all([endPosition]);
    if (rows.length === 0) return { events, endPosition };
    for (const [position, revision, record, name] of rows) {
      const at = `the event at position ${position}`;
      try {
        const body = recordBody(record);
        if (position < free) fault(`${at} overlaps the one before it.`);
        if (body.position !== position) fault(`${at} says that it stands at ${body.position}.`);
        if (body.revision !== revision) fault(`${at} has revision ${revision} and says ${body.revision}.`);
        const stream = recordStream(record);
        if (stream !== name) fault(`${at} is of stream '${stream}' and filed under '${name ?? 'none'}'.`);
        const created = recordCreatedMs(record);
        if (created < createdMs) fault(`${at} is older than the one before it.`);
        createdMs = created;
      } catch (error) {
        fault(`${at} cannot be read: ${messageOf(error)}.`);
      }
      free = position + record.length;
      endPosition = position;
      if (++events % 100_000 === 0) progress(`${events} events are in order`);
    }
  }
}

function checkStreams(db: Sqlite, fault: (sentence: string) => void): number {
  let streams = 0;
  const rows = query<[string, number, number, number | null, number | null]>(
    db,
    `select s.name, s.removed, count(e.revision), min(e.revision), max(e.revision)
     from streams s left join events e on e.sid = s.sid and e.revision < 9223372036854775807
     where s.sid > ? group by s.sid order by s.sid limit ${PAGE}`,
  );
  const tombstone = query<[number]>(
    db,
    `select 1 from events indexed by tombstones
     where revision = 9223372036854775807 and sid in (select sid from streams where name in (?, ?))`,
  );
  const lastSid = query<[number]>(
    db,
    `select max(sid) from (select sid from streams where sid > ? order by sid limit ${PAGE})`,
  );
  for (let after = 0; ;) {
    const page = rows.all([after]);
    if (page.length === 0) return streams;
    for (const [name, removed, count, first, last] of page) {
      streams++;
      if (first === null || last === null) {
        // A scavenge leaves every stream its last event; only a tombstone stands for all that was.
        const owner = isMetadataStream(name) ? baseStreamOf(name) : name;
        if (!tombstone.get([name, owner])) fault(`Stream '${name}' has no event left.`);
        continue;
      }
      if (first !== removed) {
        fault(
          `Stream '${name}' begins at revision ${first}, and ${removed} is the first that should be there.`,
        );
      }
      const missing = last - first + 1 - count;
      if (missing > 0 && last < TOMBSTONE_REVISION) {
        fault(`Stream '${name}' lacks ${missing} of its revisions ${first} to ${last}.`);
      }
    }
    after = lastSid.get([after])?.[0] ?? Number.MAX_SAFE_INTEGER;
  }
}
