import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { DB } from '#schema/db.types.js';
import { selectByKeys, toJson, upsert } from './statements.js';

const db = new Kysely<DB>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (kysely) => new PostgresIntrospector(kysely),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

describe('the statements of a batch', () => {
  it('read any number of rows by their keys in one statement', () => {
    const { sql, parameters } = selectByKeys('views', 'devices', [
      ['w1', 'ram'],
      ['w1', 'GPU-1'],
    ]).compile(db);
    expect(sql).toBe(
      'select * from "views"."devices" where ("worker_id", "device_id") in (select * from unnest($1::text[], $2::text[]))',
    );
    expect(parameters).toEqual([
      ['w1', 'w1'],
      ['ram', 'GPU-1'],
    ]);
  });

  it('name event ids and times as what they are, so that their index is used', () => {
    expect(selectByKeys('views', 'load_history', [['e1']]).compile(db).sql).toBe(
      'select * from "views"."load_history" where ("event_id") in (select * from unnest($1::uuid[]))',
    );
    expect(
      selectByKeys('views', 'usage_hours', [['2026-01-01T00:00:00.000Z', 'm', '']]).compile(db).sql,
    ).toBe(
      'select * from "views"."usage_hours" where ("hour", "model_key", "key_id") in (select * from unnest($1::timestamptz[], $2::text[], $3::text[]))',
    );
  });

  it('write any number of rows in one statement, new or known, in the schema that is given', () => {
    const row = { stream: 'worker-w1', event_ids: ['e1'] };
    const { sql, parameters } = upsert('views_next', 'recent_events', [row]).compile(db);
    expect(sql).toBe(
      'insert into "views_next"."recent_events" ("stream", "event_ids") ' +
        'select "stream", "event_ids" from json_populate_recordset(null::"views_next"."recent_events", $1::json) ' +
        'on conflict ("stream") do update set "event_ids" = excluded."event_ids"',
    );
    expect(parameters).toEqual([JSON.stringify([row])]);
  });

  it('leave out what is null: a column without a value becomes it by itself', () => {
    expect(toJson([{ id: 'a', ended: null, list: [null], zero: 0 }])).toBe(
      '[{"id":"a","list":[null],"zero":0}]',
    );
  });

  it('mark what Postgres cannot hold, and change nothing else', () => {
    const whole = { text: 'a\\u0000 is six characters, 😀 is one', n: 1, list: [null, true] };
    expect(JSON.parse(toJson([whole]))).toEqual([whole]);
    expect(JSON.parse(toJson([{ 'k\u0000': 'x\ud83d', deep: [{ t: '\u0000' }] }]))).toEqual([
      { 'k\ufffd': 'x\ufffd', deep: [{ t: '\ufffd' }] },
    ]);
  });
});
