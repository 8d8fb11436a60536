import 'reflect-metadata';
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { DB } from '#schema/db.types.js';
import { AccuracyQuery } from './accuracy/accuracy.dto.js';
import { accuracyPage } from './accuracy/accuracy.repository.js';
import { CallsQuery } from './calls/calls.dto.js';
import { callsPage } from './calls/calls.repository.js';
import { DecisionsQuery } from './decisions/decisions.dto.js';
import { decisionsOfCall, decisionsPage } from './decisions/decisions.repository.js';
import { EvictionsQuery } from './evictions/evictions.dto.js';
import { evictionsPage } from './evictions/evictions.repository.js';
import { HistoryQuery } from './history/history.dto.js';
import { loadsPage, servingPage } from './history/history.repository.js';
import { ModelsQuery } from './models/models.dto.js';
import { modelsPage, residentsOf } from './models/models.repository.js';
import { ListQuery } from './paging/list-query.dto.js';
import { encodeCursor } from './paging/page.js';
import { ActionsQuery } from './operator/operator.dto.js';
import { actionsPage } from './operator/operator.repository.js';
import { PullsQuery, pullsPage } from './pulls/pulls.repository.js';
import { drives, folders, storedArtifacts } from './storage/storage.controller.js';
import { UsageQuery } from './usage/usage.dto.js';
import { usagePage } from './usage/usage.repository.js';
import { ResidentsQuery } from './residents/residents.dto.js';
import { residentsPage } from './residents/residents.repository.js';
import { devicesOf, heldMemory, workersPage } from './workers/workers.repository.js';

const db = new Kysely<DB>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (kysely) => new PostgresIntrospector(kysely),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
}).withSchema('views');
const after = encodeCursor('1370');

describe('the statements of the lists', () => {
  it('accuracy: by model, worker and class, behind the last row of the page before', () => {
    const cursor = encodeCursor('owner/model', 'w', 'F16|ram');
    const query = Object.assign(new AccuracyQuery(), { model: 'owner/model', after: cursor, limit: 20 });
    const { sql, parameters } = accuracyPage(db, query).compile();
    expect(sql).toBe(
      'select * from "views"."size_accuracy" where "model_key" = $1 and (model_key, worker_id, class_key) > ($2, $3, $4) order by "model_key", "worker_id", "class_key" limit $5',
    );
    expect(parameters).toEqual(['owner/model', 'owner/model', 'w', 'F16|ram', 21]);
  });

  it('calls: by position, under the index of the model', () => {
    const query = Object.assign(new CallsQuery(), { model: 'owner/model', after, limit: 20 });
    const { sql, parameters } = callsPage(db, query).compile();
    expect(sql).toBe(
      'select * from "views"."calls" where "model_key" = $1 and "position" < $2 order by "position" desc limit $3',
    );
    expect(parameters).toEqual(['owner/model', '1370', 21]);
  });

  it('calls: those that run have no outcome yet, so that the partial index serves', () => {
    expect(callsPage(db, Object.assign(new CallsQuery(), { outcome: 'running' })).compile().sql).toBe(
      'select * from "views"."calls" where "outcome" is null order by "position" desc limit $1',
    );
    const failed = Object.assign(new CallsQuery(), {
      outcome: 'failed',
      resident: 'r',
      worker: 'w',
      key: 'k',
      since: '2026-01-01',
      until: '2026-01-02',
    });
    expect(callsPage(db, failed).compile().sql).toBe(
      'select * from "views"."calls" where "worker_id" = $1 and "resident_id" = $2 and "key_id" = $3 ' +
        'and "outcome" = $4 and "received_at" >= $5 and "received_at" < $6 order by "received_at" desc, "position" desc limit $7',
    );
  });

  it('calls of a range of time: along the times, behind the last row of the page before', () => {
    const timed = Object.assign(new CallsQuery(), {
      since: '2026-01-01',
      after: encodeCursor('2026-01-02', '7'),
    });
    expect(callsPage(db, timed).compile()).toMatchObject({
      sql:
        'select * from "views"."calls" where "received_at" >= $1 and (received_at, position) < ($2, $3) ' +
        'order by "received_at" desc, "position" desc limit $4',
      parameters: ['2026-01-01', '2026-01-02', '7', 51],
    });
    expect(callsPage(db, Object.assign(new CallsQuery(), { resident: 'r' })).compile().sql).toBe(
      'select * from "views"."calls" where "resident_id" = $1 order by "received_at" desc, "position" desc limit $2',
    );
    const wrong = Object.assign(new CallsQuery(), { since: '2026-01-01', after: encodeCursor('7') });
    expect(() => callsPage(db, wrong)).toThrow(/after is no cursor/);
  });

  it('usage by hour: only as many hours as a page can hold are summed', () => {
    const by = { by: ['hour', 'model'], since: '2026-01-01', limit: 10 };
    const after = encodeCursor('2026-01-03T04:00:00.000Z', 'm', '');
    const { sql, parameters } = usagePage(db, Object.assign(new UsageQuery(), { ...by, after }), 0).compile();
    const page =
      'select distinct "hour", "model_key" from "views"."usage_hours" where "hour" >= $3 and "hour" <= $4 ' +
      'and ("hour" < $5 or ("hour" = $6 and ("model_key") > ($7))) order by "hour" desc, "model_key" desc limit $8';
    expect(sql).toContain(
      `from "views"."usage_hours" where "hour" >= $1 and "hour" <= $2 and "hour" >= (select min("hour") as "hour" from (${page}) as "page")) as "c" group by "time", "model_key") as "u"`,
    );
    expect(sql).toMatch(/order by "time" desc, "model_key" asc limit \$\d+$/);
    const [since, behind] = ['2026-01-01T00:00:00.000Z', '2026-01-03T04:00:00.000Z'];
    expect(parameters.slice(0, 8)).toEqual([since, behind, since, behind, behind, behind, 'm', 11]);
  });

  it('usage by day: whole days from the rows of days, and what a range cuts from the rows of hours', () => {
    const whole = usagePage(db, new UsageQuery(), Date.parse('2026-01-31T07:00:00Z')).compile();
    expect(whole.sql).not.toContain('usage_hours');
    expect(whole.parameters).toEqual(['2026-01-01T00:00:00.000Z', 51]);
    const ranges = (since: string, until: string) =>
      usagePage(db, Object.assign(new UsageQuery(), { since, until }), 0).compile().parameters.slice(0, -1);
    expect(ranges('2026-01-01T05:00:00Z', '2026-01-04T06:00:00Z')).toEqual([
      ...['2026-01-02T00:00:00.000Z', '2026-01-04T00:00:00.000Z'],
      ...['2026-01-01T05:00:00.000Z', '2026-01-02T00:00:00.000Z'],
      ...['2026-01-04T00:00:00.000Z', '2026-01-04T06:00:00.000Z'],
    ]);
    // Within one day there is no whole one.
    expect(ranges('2026-01-01T05:00:00Z', '2026-01-01T06:00:00Z')).toEqual([
      ...['2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.000Z'],
      ...['2026-01-01T05:00:00.000Z', '2026-01-01T06:00:00.000Z'],
    ]);
  });

  it('operator actions, transfers and what lies on disks: by position, by size', () => {
    const actions = Object.assign(new ActionsQuery(), { worker: 'w', state: 'done' });
    expect(actionsPage(db, actions).compile().sql).toBe(
      'select * from "views"."operator_actions" where "worker_id" = $1 and "state" = $2 order by "position" desc limit $3',
    );
    expect(pullsPage(db, Object.assign(new PullsQuery(), { state: 'running' })).compile().sql).toBe(
      'select * from "views"."pulls" where "state" = $1 order by "position" desc limit $2',
    );
    expect(storedArtifacts(db).compile().sql).toBe(
      'select * from "views"."stored_artifacts" order by "bytes" desc, "model_key", "artifact"',
    );
    expect(drives(db).compile().sql).toBe(
      'select * from "views"."storage_drives" order by "worker_id", "mount"',
    );
    expect(folders(db).compile().sql).toBe(
      'select "worker_id", "name", "limits", "drives", "changed_at" from "views"."workers" order by "worker_id"',
    );
  });

  it('residents: live ones by default, each with the time of its last call', () => {
    const { sql, parameters } = residentsPage(db, new ResidentsQuery()).compile();
    expect(sql).toBe(
      'select "r".*, "w"."name" as "worker_name", "l"."last_call_at" from "views"."residents" as "r" ' +
        'left join "views"."workers" as "w" on "w"."worker_id" = "r"."worker_id" ' +
        'left join lateral (select "c"."received_at" as "last_call_at" from "views"."calls" as "c" ' +
        'where "c"."resident_id" = "r"."resident_id" order by "c"."received_at" desc limit $1) as "l" on true ' +
        'where "r"."phase" <> $2 order by "r"."position" desc limit $3',
    );
    expect(parameters).toEqual([1, 'ended', 51]);
  });

  it('models: by name, each with its last measured load', () => {
    const query = Object.assign(new ModelsQuery(), { after: encodeCursor('a/b', 'w1') });
    const { sql, parameters } = modelsPage(db, query).compile();
    expect(sql).toContain(
      'left join lateral (select "h"."seconds" as "load_seconds", "h"."measured_bytes", "h"."at" as "measured_at", ' +
        '"h"."event_id" as "measured_by" from "views"."load_history" as "h" ' +
        'where "h"."worker_id" = "m"."worker_id" and "h"."model_key" = "m"."model_key" and "h"."kind" = $1 ' +
        'order by "h"."position" desc limit $2) as "l" on true',
    );
    expect(sql).toContain(
      'where "m"."gone_at" is null and (m.model_key, m.worker_id) > ($3, $4) ' +
        'order by "m"."model_key", "m"."worker_id" limit $5',
    );
    expect(parameters).toEqual(['measured', 1, 'a/b', 'w1', 51]);
    expect(residentsOf(db, ['a/b']).compile().sql).toBe(
      'select "worker_id", "model_key", "resident_id", "phase", "artifact", "context_tokens" from "views"."residents" ' +
        'where "phase" <> $1 and "model_key" in ($2) order by "position"',
    );
  });

  it('decisions: never their workings', () => {
    const query = Object.assign(new DecisionsQuery(), { state: 'refused', after });
    expect(decisionsPage(db, query).compile().sql).toBe(
      'select * from "views"."decisions" where "state" = $1 and "position" < $2 order by "position" desc limit $3',
    );
    expect(decisionsOfCall(db, 'c').compile().sql).toBe(
      'select * from "views"."decisions" where "call_id" = $1 order by "position"',
    );
  });

  it('evictions, history and workers', () => {
    const eviction = Object.assign(new EvictionsQuery(), { reason: 'idle' });
    expect(evictionsPage(db, eviction).compile().sql).toBe(
      'select * from "views"."evictions" where "reason" = $1 order by "position" desc limit $2',
    );
    const pair = { workerId: 'w', modelKey: 'm' };
    for (const [statement, table] of [
      [loadsPage(db, pair, new HistoryQuery()), 'load_history'],
      [servingPage(db, pair, new HistoryQuery()), 'serving_history'],
    ] as const) {
      expect(statement.compile().sql).toBe(
        `select * from "views"."${table}" where "worker_id" = $1 and "model_key" = $2 order by "position" desc limit $3`,
      );
    }
    expect(workersPage(db, new ListQuery()).compile().sql).toBe(
      'select * from "views"."workers" order by "worker_id" limit $1',
    );
    expect(devicesOf(db, ['w']).compile().sql).toBe(
      'select * from "views"."devices" where "worker_id" in ($1) and "present" = $2 order by "worker_id", "ordinal"',
    );
    expect(heldMemory(db, ['w']).compile().sql).toBe(
      'select "worker_id", "predicted_memory", "measured_memory" from "views"."residents" ' +
        'where "worker_id" in ($1) and "phase" <> $2',
    );
  });
});
