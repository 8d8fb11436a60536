import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent } from '#domain/events/index.js';
import { SAMPLES } from '#events/testing/samples.js';
import { openSession, type ViewsDb, type ViewsSession } from '#schema/connect.js';
import { migrate } from '#schema/migrate.js';
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
    expect(row?.mean_error).toBeCloseTo(0.25);
    expect(row?.worst_error).toBeCloseTo(0.5);
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
    const days = await sql`select * from views.daily_summary order by day`.execute(db);
    expect(days.rows).toEqual([
      {
        day: '2026-01-02T00:00:00.000Z',
        calls: 2,
        completed: 1,
        failed: 1,
        abandoned: 0,
        refused: 0,
        prompt_tokens: 10,
        output_tokens: 20,
        waited_ms: 0,
        loads: 1,
        load_seconds: 1,
        failed_loads: 0,
        evictions: 1,
        decisions: 1,
        refusals: 3,
      },
    ]);
  });
});
