import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { encodeRecord, streamField } from '../../../apps/event-node/src/protocol/record.js';
import { change, openDatabase, query } from '../../../apps/event-node/src/store/database.js';

const STREAMS = 1000;
const A_TRANSACTION = 20_000;
const POSITION_GAP = 32;

/** Writes a log straight into the store's file: as many events as wanted over a thousand streams, each a sound record. */
export function buildLog(
  dataDir: string,
  events: number,
  progress: (done: number, perSecond: number) => void,
): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const db = openDatabase(join(dataDir, 'log.db'));
  // Nobody waits for any single one of these; the file is synced as a whole at the end.
  db.exec('pragma synchronous = off; pragma cache_size = -200000; drop index events_by_stream');
  const insert = change(db, 'insert into events (position, sid, revision, record) values (?, ?, ?, ?)');
  const addStream = change(db, 'insert into streams (sid, name) values (?, ?)');
  const parts = Array.from({ length: STREAMS }, (_, i) => streamField(`calls-built_${i}`));
  const metadata = Buffer.from(
    JSON.stringify({ at: new Date(0).toISOString(), by: 'bench', schemaVersion: 1 }),
  );
  const started = performance.now();
  db.exec('begin');
  for (let i = 0; i < STREAMS; i++) addStream.run([i + 1, `calls-built_${i}`]);
  let position = 0;
  for (let i = 0; i < events; i++) {
    const stream = i % STREAMS;
    const part = parts[stream];
    if (!part) break;
    const record = encodeRecord(
      {
        id: randomUUID(),
        type: 'Built',
        json: true,
        data: Buffer.from(`{"n":${i},"pad":"${'x'.repeat(120)}"}`),
        customMetadata: metadata,
      },
      part,
      Math.floor(i / STREAMS),
      position,
      1_700_000_000_000 + i,
    );
    insert.run([position, stream + 1, Math.floor(i / STREAMS), record]);
    position += record.length + POSITION_GAP;
    if ((i + 1) % A_TRANSACTION === 0) {
      db.exec('commit');
      query(db, 'pragma wal_checkpoint(truncate)').all([]);
      progress(i + 1, Math.round((i + 1) / ((performance.now() - started) / 1000)));
      db.exec('begin');
    }
  }
  db.exec('commit');
  // At the end in one sort, instead of a random page for every event.
  db.exec('create unique index events_by_stream on events (sid, revision)');
  query(db, 'pragma wal_checkpoint(truncate)').all([]);
  db.close();
}
