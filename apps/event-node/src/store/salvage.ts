import Database from 'libsql';
import { closeSync, existsSync, fsyncSync, openSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makePrivateFolder } from '../access/private-files.js';
import { recordBody, recordCreatedMs, recordStream, TOMBSTONE_REVISION } from '../protocol/record.js';
import { messageOf } from '../errors.js';
import { change, isDamage, openDatabase, query, type Sqlite } from './database.js';

/**
 * Holds the UUID by which readers know a log. It is left out of what is salvaged or restored: whoever kept a checkpoint
 * of the old log must see that this is another one, for positions behind the cut will be given again.
 */
export const IDENTITY_STREAM = 'log-identity';

export interface Salvaged {
  readonly kept: number;
  /** When the last event that was kept was written; undefined when none was. */
  readonly lastKeptMs: number | undefined;
  /** Events behind the damage that can still be counted; they are lost all the same. */
  readonly countedLost: number;
}

/** Moves the damaged file away and writes a new log from its sound beginning. */
export function setAside(
  dataDir: string,
  file: string,
  why: string,
  { say, now }: { readonly say: (message: string) => void; readonly now: () => number },
): void {
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, '-');
  const folder = join(dataDir, `damaged-${stamp}`);
  makePrivateFolder(folder);
  const away = join(folder, basename(file));
  for (const suffix of ['', '-wal', '-shm']) {
    if (existsSync(`${file}${suffix}`)) renameSync(`${file}${suffix}`, `${away}${suffix}`);
  }
  say(
    `the event log ${file} is damaged (${why.replaceAll(/\s+/g, ' ').trim()}). It was moved to ${folder}; taking over what is sound in it.`,
  );
  const beside = `${file}.salvage`;
  const { kept, lastKeptMs, countedLost } = copySound(away, beside);
  renameSync(beside, file);
  const until = lastKeptMs === undefined ? '' : ` up to ${new Date(lastKeptMs).toISOString()}`;
  const lost = countedLost > 0 ? `${countedLost} events` : 'an unknown number of events';
  say(
    `kept ${kept} events${until}; lost: ${lost} behind them. This is a new log to its readers, which build their views again. ` +
      `The damaged file stays in ${folder} until you remove it; a backup can be put in its place while the node is stopped.`,
  );
}

/**
 * Copies events in the order of the log until the first that is not sound. So the copy is what the log once was: no
 * stream has a gap. Everything comes from the records; tables and indexes of the damaged file are not trusted.
 */
export function copySound(from: string, to: string): Salvaged {
  const target = openDatabase(to);
  let source: Sqlite | undefined;
  try {
    source = new Database(from);
    return copyEvents(source, target);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { kept: 0, lastKeptMs: undefined, countedLost: 0 };
  } finally {
    source?.close();
    query(target, 'pragma wal_checkpoint(truncate)').all([]);
    target.close();
    const handle = openSync(to, 'r+');
    fsyncSync(handle);
    closeSync(handle);
  }
}

const PAGE = 200;

function copyEvents(source: Sqlite, target: Sqlite): Salvaged {
  const page = query<[number, Buffer]>(
    source,
    `select position, record from events not indexed where position > ? order by position limit ?`,
  );
  const streams = new Map<string, { readonly sid: number; last: number }>();
  const addStream = change(target, 'insert into streams (name, removed) values (?, ?)');
  const insert = change(target, 'insert into events (position, sid, revision, record) values (?, ?, ?, ?)');
  const insertTombstone = change(
    target,
    'insert into events (position, sid, revision, record) values (?, ?, 9223372036854775807, ?)',
  );
  let kept = 0;
  let lastKeptMs: number | undefined;
  let cursor = -1;
  const copy = (position: number, record: Buffer): boolean => {
    const body = recordBody(record);
    const name = recordStream(record);
    if (body.position !== position) return false;
    if (name !== IDENTITY_STREAM) {
      let stream = streams.get(name);
      if (!stream) {
        const first = body.revision === TOMBSTONE_REVISION ? 0 : body.revision;
        stream = { sid: Number(addStream.run([name, first]).lastInsertRowid), last: first - 1 };
        streams.set(name, stream);
      }
      if (body.revision === TOMBSTONE_REVISION) insertTombstone.run([position, stream.sid, record]);
      else if (body.revision === stream.last + 1) {
        insert.run([position, stream.sid, body.revision, record]);
        stream.last = body.revision;
      } else return false;
      kept++;
    }
    lastKeptMs = recordCreatedMs(record);
    cursor = position;
    return true;
  };
  const next = (limit: number): readonly (readonly [number, Buffer])[] | undefined => {
    try {
      return page.all([cursor, limit]);
    } catch (error) {
      if (isDamage(error)) return undefined;
      throw error;
    }
  };
  target.exec('begin immediate');
  for (let sound = true; sound;) {
    // Near the damage a whole page fails; its first events may still be read one by one.
    const rows = next(PAGE) ?? next(1);
    if (!rows || rows.length === 0) break;
    for (const [position, record] of rows) {
      try {
        sound = copy(position, record);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        sound = false;
      }
      if (!sound) break;
    }
  }
  target.exec('commit');
  return { kept, lastKeptMs, countedLost: countBehind(source, cursor) };
}

/** What the index still knows of the events behind the cut. */
function countBehind(source: Sqlite, position: number): number {
  try {
    return (
      query<[number]>(source, 'select count(*) from events where position > ?').get([position])?.[0] ?? 0
    );
  } catch (error) {
    if (isDamage(error)) return 0;
    throw new Error(`The damaged log could not be counted: ${messageOf(error)}`, { cause: error });
  }
}
