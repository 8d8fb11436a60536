import { describe, expect, it } from 'vitest';
import { MemoryLog } from '#events/testing/memory-log.js';
import { TABLES } from '#schema/db.types.js';
import { VIEW_TABLES } from '../rows/views.js';
import * as checkpoint from '../run/checkpoint.js';
import { type RecordedDb, recordedDb } from '#schema/testing/recorded-db.js';
import * as beside from './beside.js';
import * as compare from './compare.js';
import * as live from './live-checkpoint.js';
import * as swapping from './swap.js';
import * as verifying from './verify.js';

const POSITION = { commit: 7n, prepare: 7n };
const STANDS = { log_id: 'log', commit_position: '7', prepare_position: '7' };
const own = (table: keyof typeof TABLES) => TABLES[table].columns.map((column) => `"${column}"`).join(', ');

/** Every function that asks something of Postgres, what it finds there, and what it asks, word for word. */
const CASES: Readonly<
  Record<
    string,
    {
      readonly run: (recorded: RecordedDb) => Promise<unknown>;
      readonly finds?: (sql: string) => readonly Readonly<Record<string, unknown>>[];
      readonly asks: readonly string[];
    }
  >
> = {
  readCheckpoint: {
    run: ({ db }) => checkpoint.readCheckpoint(db, 'views'),
    asks: [
      'select "log_id", "commit_position", "prepare_position" from "views"."checkpoints" where "name" = $1',
    ],
  },
  beginCheckpoint: {
    run: ({ db }) => checkpoint.beginCheckpoint(db, 'views_next', 'log'),
    asks: [
      'insert into "views_next"."checkpoints" ("name", "log_id", "commit_position", "prepare_position", "updated_at") values ($1, $2, $3, $4, now()) on conflict ("name") do update set "log_id" = $5, "commit_position" = $6, "prepare_position" = $7, "updated_at" = now()',
    ],
  },
  advanceCheckpoint: {
    run: ({ db }) =>
      checkpoint.advanceCheckpoint(db, 'views', { logId: 'log', position: undefined }, POSITION),
    asks: [
      'update "views"."checkpoints" set "commit_position" = $1, "prepare_position" = $2, "updated_at" = now() where "name" = $3 and "log_id" = $4 and "commit_position" is not distinct from $5 and "prepare_position" is not distinct from $6',
    ],
  },
  takeTurn: {
    run: ({ db }) => beside.takeTurn(db, 'views'),
    finds: () => [{ locked: true }],
    asks: ['select pg_try_advisory_lock(hashtextextended($1, 0)) as locked'],
  },
  clearBeside: {
    run: ({ db }) => beside.clearBeside(db, 'views'),
    asks: ['next', 'verify', 'old'].map((name) => `drop schema if exists "views_${name}" cascade`),
  },
  dropOld: {
    run: ({ db }) => beside.dropOld(db, 'views'),
    asks: ['drop schema if exists "views_old" cascade'],
  },
  clearLeftovers: {
    run: ({ db }) => beside.clearLeftovers(db, 'views'),
    finds: () => [{ name: 'views_next', locked: true }],
    asks: [
      'select nspname as name from pg_namespace where nspname = any($1::text[])',
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
      ...['next', 'verify', 'old'].map((name) => `drop schema if exists "views_${name}" cascade`),
      'select pg_advisory_unlock(hashtextextended($1, 0))',
    ],
  },
  makeBeside: {
    run: ({ session }) => beside.makeBeside(session, 'views_next'),
    finds: () => [{ name: 'calls_by_model', definition: 'create index' }],
    asks: [
      'set synchronous_commit to off',
      'select i.indexname as name, i.indexdef as definition from pg_indexes i where i.schemaname = $1 and not exists (select from pg_constraint c join pg_namespace n on n.oid = c.connamespace where n.nspname = i.schemaname and c.conname = i.indexname) order by 1',
      'drop index "views_next"."calls_by_model"',
    ],
  },
  makeIndexes: {
    run: ({ db }) => beside.makeIndexes(db, ['create index a on b (c)']),
    asks: ['create index a on b (c)'],
  },
  liveCheckpoint: {
    run: ({ db }) => live.liveCheckpoint(db, 'views'),
    finds: () => [{ found: true, ...STANDS }],
    asks: [
      'select to_regclass($1) is not null as found',
      'select "log_id", "commit_position", "prepare_position" from "views"."checkpoints" where "name" = $1',
    ],
  },
  compareViews: {
    run: ({ db }) =>
      compare.compareViews({ db, schema: 'views' }, { db, schema: 'views_verify' }, () => undefined),
    // The one table whose digests differ is read row by row.
    finds: (sql) =>
      sql.includes('as digest') ? [{ rows: '1', digest: sql.endsWith('"views"."days"') ? 'a' : 'b' }] : [],
    asks: VIEW_TABLES.flatMap((table) => [
      ...['views', 'views_verify'].map(
        (schema) =>
          `select count(*)::text as rows, sum(hashtextextended(row(${own(table)})::text, 0))::text as digest from "${schema}"."${table}"`,
      ),
      ...(table === 'days'
        ? ['views', 'views_verify'].flatMap((schema) => [
            `declare "compare_${schema}" no scroll cursor for select json_build_array(t."day")::text collate "C" as key, to_jsonb(t)::text as row from "${schema}"."days" t order by 1`,
            `fetch 2000 from "compare_${schema}"`,
            `close "compare_${schema}"`,
          ])
        : []),
    ]),
  },
  swap: {
    run: ({ db, session }) =>
      swapping.swap({
        databaseUrl: '',
        live: 'views',
        log: Object.assign(new MemoryLog(), { endPosition: () => Promise.resolve(POSITION) }),
        writing: { ...session, db },
        folded: { logId: 'log', position: POSITION },
        fold: (from) => Promise.resolve(from),
        open: () => Promise.resolve(session),
      }),
    finds: (sql) => [{ found: true, name: sql.includes('pg_class') ? 'calls' : 'views', ...STANDS }],
    asks: [
      'set synchronous_commit to on',
      'set local lock_timeout to 60000',
      'select pg_advisory_xact_lock(hashtextextended($1, 0))',
      'select to_regclass($1) is not null as found',
      'lock table "views"."checkpoints" in access exclusive mode',
      'select to_regclass($1) is not null as found',
      'select "log_id", "commit_position", "prepare_position" from "views"."checkpoints" where "name" = $1',
      'set local lock_timeout to 200',
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm') order by 1`,
      'lock table "views"."calls" in access exclusive mode',
      'select exists (select from pg_namespace where nspname = $1) as found',
      'alter schema "views" rename to "views_old"',
      'alter schema "views_next" rename to "views"',
    ],
  },
  sameTables: {
    run: ({ db }) => verifying.sameTables(db, 'views').catch(() => undefined),
    finds: () => [{ found: true, name: '0001_views.sql' }],
    asks: [
      'select to_regclass($1) is not null as found',
      'select name from "views"."migrations" order by name',
    ],
  },
};

/** They ask nothing themselves. */
const OTHERS = ['besideOf', 'ReplayRuns', 'openReplaySession', 'endOf', 'isOfThisLog', 'verify'];

describe('the statements of a checkpoint and of a replay', () => {
  it.each(Object.entries(CASES))('%s', async (_name, { run, finds, asks }) => {
    const recorded = recordedDb(finds);
    await run(recorded);
    expect(recorded.asked).toEqual(asks);
  });

  it('are those of every function there', () => {
    const functions = [checkpoint, beside, compare, live, swapping, verifying].flatMap((module) =>
      Object.entries(module).flatMap(([name, value]) =>
        typeof value === 'function' && !OTHERS.includes(name) ? [name] : [],
      ),
    );
    expect(Object.keys(CASES).sort()).toEqual(functions.sort());
  });
});
