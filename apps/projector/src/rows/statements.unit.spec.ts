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

  it('name event ids as what they are, so that their index is used', () => {
    expect(selectByKeys('views', 'applied_events', [['e1']]).compile(db).sql).toBe(
      'select * from "views"."applied_events" where ("event_id") in (select * from unnest($1::uuid[]))',
    );
  });

  it('write any number of rows in one statement, new or known, in the schema that is given', () => {
    const row = { event_id: 'e1', position: '137' };
    const { sql, parameters } = upsert('views_next', 'applied_events', [row]).compile(db);
    expect(sql).toBe(
      'insert into "views_next"."applied_events" ("event_id", "position") ' +
        'select "event_id", "position" from json_populate_recordset(null::"views_next"."applied_events", $1::json) ' +
        'on conflict ("event_id") do update set "position" = excluded."position"',
    );
    expect(parameters).toEqual([JSON.stringify([row])]);
  });

  it('mark what Postgres cannot hold, and change nothing else', () => {
    const whole = { text: 'a\\u0000 is six characters, 😀 is one', n: 1, list: [null, true] };
    expect(JSON.parse(toJson([whole]))).toEqual([whole]);
    expect(JSON.parse(toJson([{ 'k\u0000': 'x\ud83d', deep: [{ t: '\u0000' }] }]))).toEqual([
      { 'k\ufffd': 'x\ufffd', deep: [{ t: '\ufffd' }] },
    ]);
  });
});
