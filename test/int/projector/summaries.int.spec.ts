import 'reflect-metadata';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent } from '#domain/events/index.js';
import { SAMPLES } from '#events/testing/samples.js';
import { openSession, type ViewsDb, type ViewsSession } from '#schema/connect.js';
import { migrate, readMigrations } from '#schema/migrate.js';
import { AccuracyQuery } from '../../../apps/api/src/admin/accuracy/accuracy.dto.js';
import { accuracyPage } from '../../../apps/api/src/admin/accuracy/accuracy.repository.js';
import { CallsQuery } from '../../../apps/api/src/admin/calls/calls.dto.js';
import { callsPage } from '../../../apps/api/src/admin/calls/calls.repository.js';
import { DecisionsQuery } from '../../../apps/api/src/admin/decisions/decisions.dto.js';
import { decisionsPage } from '../../../apps/api/src/admin/decisions/decisions.repository.js';
import { EvictionsQuery } from '../../../apps/api/src/admin/evictions/evictions.dto.js';
import { evictionsPage } from '../../../apps/api/src/admin/evictions/evictions.repository.js';
import { HistoryQuery } from '../../../apps/api/src/admin/history/history.dto.js';
import { loadsPage, servingPage } from '../../../apps/api/src/admin/history/history.repository.js';
import { keysPage } from '../../../apps/api/src/admin/keys/keys.repository.js';
import { ModelsQuery } from '../../../apps/api/src/admin/models/models.dto.js';
import { modelsPage } from '../../../apps/api/src/admin/models/models.repository.js';
import { ActionsQuery } from '../../../apps/api/src/admin/operator/operator.dto.js';
import { actionsPage } from '../../../apps/api/src/admin/operator/operator.repository.js';
import { ListQuery } from '../../../apps/api/src/admin/paging/list-query.dto.js';
import { PullsQuery, pullsPage } from '../../../apps/api/src/admin/pulls/pulls.repository.js';
import { ResidentsQuery } from '../../../apps/api/src/admin/residents/residents.dto.js';
import { residentsPage } from '../../../apps/api/src/admin/residents/residents.repository.js';
import { dailyRows } from '../../../apps/api/src/admin/usage/daily.repository.js';
import { workersPage } from '../../../apps/api/src/admin/workers/workers.repository.js';
import { foldBatch } from '../../../apps/projector/src/rows/fold.js';
import { postgresRows } from '../../../apps/projector/src/rows/row-store.js';
import { recorded } from '../../../apps/projector/src/testing/random-log.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';

describe('views that are summed from other views', () => {
  let postgres: TestPostgres;
  let session: ViewsSession;
  let db: ViewsDb;

  beforeAll(async () => {
    postgres = await startPostgres();
    session = await openSession(await postgres.createDatabase(), { applicationName: 'test' });
    await migrate(session.client, 'views');
    db = session.db.withSchema('views');
    const call = (n: number, hour: string, more: object = {}): [string, BerthEvent['type'], object][] => {
      const receivedAt = `2026-01-02T${hour}:10:00.000Z`;
      const ids = { callId: `c${n}` };
      const stamps = { receivedAt, finishedAt: receivedAt };
      return [
        ['calls-m', 'CallStarted', { ...ids, modelKey: 'm', keyId: 'k1', receivedAt }],
        ['calls-m', 'CallFinished', { ...ids, modelKey: 'm', stamps, ...more }],
      ];
    };
    const load = (predicted: number): [string, BerthEvent['type'], object] => [
      'history-w~m',
      'LoadMeasured',
      { predictedByDevice: [{ deviceId: 'ram', bytes: predicted }] },
    ];
    const events: [string, BerthEvent['type'], object?][] = [
      ['worker-w', 'PlacementDecided', { victims: [] }],
      ['worker-w', 'LoadStarted'],
      ['worker-w', 'ResidentReady', { loadedAt: '2026-01-02T00:00:04.500Z' }],
      ['worker-w', 'EvictionStarted', { residentId: SAMPLES.LoadStarted.residentId, reason: 'idle' }],
      ['worker-w', 'ResidentEvicted', { residentId: SAMPLES.LoadStarted.residentId, reason: 'idle' }],
      ['worker-w', 'PlacementRefused', { decisionId: 'd2', count: 3 }],
      ['worker-w', 'CapacityMeasured'],
      ['catalog-w', 'ModelFound'],
      load(1234),
      load(617),
      ...call(1, '05'),
      ...call(2, '09', { outcome: 'failed', tokens: {} }),
    ];
    const drawn = events.map(([stream, type, data], n) => ({
      stream,
      id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
      event: { type, data: { ...SAMPLES[type], ...data } } as unknown as BerthEvent,
      at: new Date(Date.UTC(2026, 0, 2) + n * 1000).toISOString(),
    }));
    await foldBatch(postgresRows(session.db, 'views'), recorded(drawn));
  });
  afterAll(async () => {
    await session.close();
    await postgres.stop();
  });

  it('give usage by day, model and key', async () => {
    expect(await db.selectFrom('usage_days').selectAll().execute()).toMatchObject([
      {
        day: '2026-01-02T00:00:00.000Z',
        model_key: 'm',
        key_id: 'k1',
        calls: 2,
        completed: 1,
        failed: 1,
        output_tokens: 20,
      },
    ]);
  });

  it('give mean and worst error of sizes, by class and engine build', async () => {
    const [row] = await db.selectFrom('size_accuracy').selectAll().execute();
    expect(row).toMatchObject({ worker_id: 'w', model_key: 'm', engine_build: 'built-in@3.21.1', loads: 2 });
    expect([row?.error_millionths, row?.worst_millionths]).toEqual([500_000, 500_000]);
    expect([row?.most_above_bytes, row?.most_below_bytes]).toEqual([617, 0]);
  });

  it('give how far predicted load times were from what loads took', async () => {
    expect(await db.selectFrom('load_time_accuracy').selectAll().execute()).toMatchObject([
      {
        model_key: 'owner/model',
        engine_kind: 'built-in',
        loads: 1,
        mean_seconds: 3.5,
        mean_error_seconds: 1,
      },
    ]);
  });

  it('give what models take on disk, and the drives', async () => {
    const artifacts = await db.selectFrom('stored_artifacts').selectAll().orderBy('artifact').execute();
    expect(artifacts.map(({ artifact, bytes, complete }) => [artifact, bytes, complete])).toEqual([
      ['F16', 5, false],
      ['Q4_K_M', 1000, true],
    ]);
    expect(await db.selectFrom('storage_drives').selectAll().execute()).toMatchObject([
      { worker_id: 'w', mount: '/', total_bytes: 1_000_000, free_bytes: 500_000 },
    ]);
  });

  it('give one line a day of everything that happened', async () => {
    const days = await dailyRows(db, '2026-01-01T00:00:00Z', '2026-01-09T00:00:00Z').execute();
    expect(days).toEqual([
      {
        day: '2026-01-02T00:00:00.000Z',
        calls: 2,
        completed: 1,
        failed: 1,
        abandoned: 0,
        refused: 0,
        promptTokens: 10,
        outputTokens: 20,
        waitedMs: 0,
        loads: 1,
        loadSeconds: 1,
        failedLoads: 0,
        evictions: 1,
        decisions: 1,
        refusals: 3,
      },
    ]);
  });

  it('are what the migration makes of rows that were there before it', async () => {
    const kept = async () => ({
      usage: await db.selectFrom('usage_days').selectAll().execute(),
      days: await db.selectFrom('days').selectAll().execute(),
      accuracy: await db.selectFrom('size_accuracy').selectAll().execute(),
    });
    const folded = await kept();
    const migration = readMigrations().find(({ name }) => name.includes('kept_sums'));
    const inserts = migration?.sql.split(';\n').filter((statement) => /^insert into/m.test(statement));
    expect(inserts).toHaveLength(3);
    await sql`truncate views.usage_days, views.days, views.size_accuracy`.execute(db);
    await sql`set search_path to views`.execute(db);
    for (const statement of inserts ?? []) await sql.raw(statement).execute(db);
    expect(await kept()).toEqual(folded);
  });

  it('leave no list without an index that gives its rows in order', async () => {
    const made = <T extends object>(type: new () => T, fields: object = {}): T =>
      Object.assign(new type(), fields);
    const pair = { workerId: 'w', modelKey: 'm' };
    const calls = (fields: object) => callsPage(db, made(CallsQuery, fields));
    const lists = [
      [accuracyPage(db, made(AccuracyQuery)), 'size_accuracy_pkey'],
      [accuracyPage(db, made(AccuracyQuery, { worker: 'w' })), 'size_accuracy_by_worker'],
      [actionsPage(db, made(ActionsQuery)), 'operator_actions_by_position'],
      [actionsPage(db, made(ActionsQuery, { worker: 'w' })), 'operator_actions_by_worker'],
      [calls({}), 'calls_by_position'],
      [calls({ model: 'm' }), 'calls_by_model'],
      [calls({ worker: 'w' }), 'calls_by_worker'],
      [calls({ key: 'k' }), 'calls_by_key'],
      [calls({ resident: 'r' }), 'calls_by_resident'],
      [calls({ outcome: 'running' }), 'calls_running'],
      [calls({ outcome: 'failed' }), 'calls_troubled'],
      [calls({ since: '2026-01-01T00:00:00Z' }), 'calls_by_time'],
      [decisionsPage(db, made(DecisionsQuery)), 'decisions_by_position'],
      [decisionsPage(db, made(DecisionsQuery, { model: 'm' })), 'decisions_by_model'],
      [decisionsPage(db, made(DecisionsQuery, { worker: 'w' })), 'decisions_by_worker'],
      [decisionsPage(db, made(DecisionsQuery, { state: 'open' })), 'decisions_by_state'],
      [
        decisionsPage(db, made(DecisionsQuery, { worker: 'w', state: 'open' })),
        'decisions_by_worker_and_state',
      ],
      [evictionsPage(db, made(EvictionsQuery)), 'evictions_by_position'],
      [evictionsPage(db, made(EvictionsQuery, { model: 'm' })), 'evictions_by_model'],
      [loadsPage(db, pair, made(HistoryQuery)), 'load_history_by_pair'],
      [servingPage(db, pair, made(HistoryQuery)), 'serving_history_by_pair'],
      [keysPage(db, made(ListQuery)), 'api_keys_by_position'],
      [modelsPage(db, made(ModelsQuery)), 'models_by_key'],
      [pullsPage(db, made(PullsQuery)), 'pulls_by_position'],
      [residentsPage(db, made(ResidentsQuery, { state: 'all' })), 'residents_by_position'],
      [residentsPage(db, made(ResidentsQuery, { worker: 'w' })), 'residents_live'],
      [residentsPage(db, made(ResidentsQuery, { state: 'all', model: 'm' })), 'residents_by_model'],
      [workersPage(db, made(ListQuery)), 'workers_pkey'],
    ] as const;
    // So few rows are read whole without an index, and sorted, where nothing forbids it.
    await sql`set enable_seqscan to off`.execute(db);
    await sql`set enable_bitmapscan to off`.execute(db);
    for (const [page, index] of lists) {
      const plan = (await page.explain()).map((line) => Object.values(line)[0] as string).join('\n');
      expect([index, plan]).toEqual([index, expect.stringContaining(`using ${index} on`)]);
      expect(plan).not.toMatch(/-> +Sort\b/);
    }
  });
});
