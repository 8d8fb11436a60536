import { afterEach, beforeEach, expect, test } from 'vitest';
import Database from 'libsql';
import { encodeRecord, streamField } from '../protocol/record.js';
import { temporaryFolder } from '../testing/node-fixture.js';
import { change, query, type Sqlite } from './database.js';
import type { EventStore } from './event-store.js';
import { logFile, openLog } from './open-log.js';
import { verifyLog } from './verify.js';

let folder: ReturnType<typeof temporaryFolder>;
let store: EventStore;
/** Each event is written a second after the one before it. */
let clockMs: number;

const proposed = (n: number, pad = 0) => ({
  id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  type: 'Verified',
  json: false,
  data: Buffer.alloc(pad, 0x61),
  customMetadata: Buffer.alloc(0),
});
const append = (stream: string, n: number, pad?: number) => store.append(stream, 'any', [proposed(n, pad)]);

beforeEach(async () => {
  folder = temporaryFolder();
  clockMs = Date.UTC(2026, 0, 1);
  store = openLog(folder.path, {
    say: () => undefined,
    onDamage: () => undefined,
    now: () => (clockMs += 1000),
  });
  for (let n = 0; n < 3; n++) await append('a-1', n);
  for (let n = 3; n < 5; n++) await append('b-1', n);
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

interface Row {
  readonly position: number;
  readonly revision: number;
  readonly record: Buffer;
}
const rowOf = (db: Sqlite, stream: string, revision: number): Row => {
  const found = query<[number, Buffer]>(
    db,
    'select position, record from events where revision = ? and sid = (select sid from streams where name = ?)',
  ).get([revision, stream]);
  if (!found) throw new Error(`${stream} has no revision ${revision}`);
  return { position: found[0], revision, record: found[1] };
};
const setRecord = (db: Sqlite, position: number, record: Buffer) =>
  change(db, 'update events set record = ? where position = ?').run([record, position]);
const sidOf = `(select sid from streams where name = 'a-1')`;

/** Each kind of damage, and the one sentence that names it. */
const damages: [string, (db: Sqlite) => void, (at: number) => RegExp][] = [
  [
    'an event that says that it stands elsewhere',
    (db) => {
      const { position } = rowOf(db, 'a-1', 1);
      const created = Date.UTC(2026, 0, 1) + 4000;
      setRecord(db, position, encodeRecord(proposed(1), streamField('a-1'), 1, position - 1, created));
    },
    (at) => new RegExp(`position ${at} says that it stands at ${at - 1}\\.`),
  ],
  [
    'an event that overlaps its successor',
    (db) => {
      const { position } = rowOf(db, 'a-1', 0);
      const created = Date.UTC(2026, 0, 1) + 3000;
      setRecord(db, position, encodeRecord(proposed(0, 200), streamField('a-1'), 0, position, created));
    },
    (at) => new RegExp(`position ${at} overlaps the one before it`),
  ],
  [
    'an event that is older than its predecessor',
    (db) => {
      const { position } = rowOf(db, 'a-1', 1);
      setRecord(db, position, encodeRecord(proposed(1), streamField('a-1'), 1, position, 1e12));
    },
    (at) => new RegExp(`position ${at} is older than the one before it`),
  ],
  [
    'an event under a revision that it does not have',
    (db) => {
      const { position } = rowOf(db, 'a-1', 1);
      const created = Date.UTC(2026, 0, 1) + 4000;
      setRecord(db, position, encodeRecord(proposed(1), streamField('a-1'), 7, position, created));
    },
    (at) => new RegExp(`position ${at} has revision 1 and says 7`),
  ],
  [
    'an event that is filed under another stream',
    (db) => {
      const { position } = rowOf(db, 'a-1', 1);
      const created = Date.UTC(2026, 0, 1) + 4000;
      setRecord(db, position, encodeRecord(proposed(1), streamField('b-1'), 1, position, created));
    },
    (at) => new RegExp(`position ${at} is of stream 'b-1' and filed under 'a-1'`),
  ],
  [
    'a record that was cut',
    (db) => {
      const { position, record } = rowOf(db, 'a-1', 1);
      setRecord(db, position, record.subarray(0, record.length - 1));
    },
    (at) => new RegExp(`position ${at} cannot be read`),
  ],
  [
    'a gap within a stream',
    (db) => db.exec(`delete from events where revision = 1 and sid = ${sidOf}`),
    () => /^Stream 'a-1' lacks 1 of its revisions 0 to 2\.$/,
  ],
  [
    'a stream without its beginning',
    (db) => db.exec(`delete from events where revision = 0 and sid = ${sidOf}`),
    () => /^Stream 'a-1' begins at revision 1, and 0 is the first that should be there\.$/,
  ],
  [
    'a stream that has lost every event',
    (db) => db.exec(`delete from events where sid = ${sidOf}`),
    () => /^Stream 'a-1' has no event left\.$/,
  ],
];

for (const [what, damage, sentence] of damages) {
  test(`${what} is named, and nothing else`, () => {
    const { position } = rowOf(store.db, 'a-1', 1);
    expect(verifyLog(store.db)).toMatchObject({ faults: [], events: 7, streams: 4 });
    damage(store.db);
    expect(verifyLog(store.db).faults).toEqual([expect.stringMatching(sentence(position)) as string]);
  });
}

test('an index that no longer has an event is a fault of the file', async () => {
  await store.close();
  const file = new Database(logFile(folder.path));
  const [root, sql] = query<[number, string]>(
    file,
    `select rootpage, sql from sqlite_schema where name = 'events_by_stream'`,
  ).get([]) ?? [0, ''];
  file.exec(`pragma writable_schema = on; delete from sqlite_schema where name = 'events_by_stream'`);
  file.close();
  const without = new Database(logFile(folder.path));
  without.exec(
    `update events set revision = 9 where revision = 2 and sid = ${sidOf}; pragma writable_schema = on`,
  );
  without
    .prepare(`insert into sqlite_schema values ('index', 'events_by_stream', 'events', ?, ?)`)
    .run([root, sql]);
  without.close();
  store = openLog(folder.path, { say: () => undefined, onDamage: () => undefined, now: Date.now });
  expect(verifyLog(store.db).faults.join('\n')).toMatch(
    /The file's structure is damaged: row \d+ missing from index events_by_stream/,
  );
});

test('what a scavenge has removed is no fault, of a tombstoned stream not even all of it', async () => {
  const tb = Buffer.from('{"$tb":2}');
  await store.append('$$a-1', 'any', [{ ...proposed(10), type: '$metadata', json: true, data: tb }]);
  await store.append('$$b-1', 'any', [{ ...proposed(11), type: '$metadata', json: true, data: tb }]);
  await store.tombstone('b-1', 'any');
  expect(await store.scavenge()).toMatchObject({ removedEvents: 2 + 2 + 1 });
  // Two system events, one of a-1 with its metadata, and the tombstone.
  expect(verifyLog(store.db)).toMatchObject({ faults: [], events: 5, streams: 6 });
});

test('of many faults a hundred are named', async () => {
  for (let n = 0; n < 120; n++) await append(`c-${n}`, 100 + n);
  store.db.exec(`delete from events where sid in (select sid from streams where name like 'c-%')`);
  expect(verifyLog(store.db).faults).toHaveLength(100);
});
