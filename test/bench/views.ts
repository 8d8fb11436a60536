import 'reflect-metadata';
import { plainToInstance } from 'class-transformer';
import type { ViewsDb } from '#schema/connect.js';
import { openSession, VIEWS_SCHEMA } from '#schema/connect.js';
import { AccuracyQuery } from '../../apps/api/src/admin/accuracy/accuracy.dto.js';
import { accuracyPage } from '../../apps/api/src/admin/accuracy/accuracy.repository.js';
import { CallsQuery } from '../../apps/api/src/admin/calls/calls.dto.js';
import { callsPage } from '../../apps/api/src/admin/calls/calls.repository.js';
import { DecisionsQuery } from '../../apps/api/src/admin/decisions/decisions.dto.js';
import { decisionsPage } from '../../apps/api/src/admin/decisions/decisions.repository.js';
import { EvictionsQuery } from '../../apps/api/src/admin/evictions/evictions.dto.js';
import { evictionsPage } from '../../apps/api/src/admin/evictions/evictions.repository.js';
import { HistoryQuery } from '../../apps/api/src/admin/history/history.dto.js';
import { loadsPage } from '../../apps/api/src/admin/history/history.repository.js';
import { keysPage } from '../../apps/api/src/admin/keys/keys.repository.js';
import { ModelsQuery } from '../../apps/api/src/admin/models/models.dto.js';
import { modelsPage } from '../../apps/api/src/admin/models/models.repository.js';
import { ActionsQuery } from '../../apps/api/src/admin/operator/operator.dto.js';
import { actionsPage } from '../../apps/api/src/admin/operator/operator.repository.js';
import { ListQuery } from '../../apps/api/src/admin/paging/list-query.dto.js';
import { encodeCursor } from '../../apps/api/src/admin/paging/page.js';
import { ResidentsQuery } from '../../apps/api/src/admin/residents/residents.dto.js';
import { residentsPage } from '../../apps/api/src/admin/residents/residents.repository.js';
import { storedArtifacts } from '../../apps/api/src/admin/storage/storage.controller.js';
import { dailyRows } from '../../apps/api/src/admin/usage/daily.repository.js';
import { UsageQuery } from '../../apps/api/src/admin/usage/usage.dto.js';
import { usagePage } from '../../apps/api/src/admin/usage/usage.repository.js';
import { makeBeside, makeIndexes } from '../../apps/projector/src/replay/beside.js';
import { startPostgres } from '../support/postgres.js';
import { ascending, cpuMs, quantile } from './measures.js';

/**
 * How long pages of the management lists take over many calls, their rows made in SQL.
 * `node dist/test/bench/views.js [--calls 10000000] [--check]`; calls come at ten a second, up to the day that SEED_END names.
 */
const at = process.argv.indexOf('--calls');
const CALLS = at < 0 ? 10_000_000 : Number(process.argv[at + 1]);
const LIMIT_MS = 50;
const RUNS = 100;
const MODELS = 40;
const KEYS = 10;
const WORKERS = 4;
const CLASSES = 50;
const SEED_END = '2026-01-31T00:00:00Z';
const END_MS = Date.parse(SEED_END);
const daysBack = (days: number): string => new Date(END_MS - days * 86_400_000).toISOString();

/** One row in a thousand failed; every call has its resident, model, key and worker by its number. */
const SEEDS: readonly string[] = [
  `insert into calls (call_id, api_id, model_key, worker_id, endpoint, key_id, outcome, status, resident_id, artifact,
     attempts, received_at, forwarded_at, finished_at, prompt_tokens, output_tokens, prompt_ms, decode_ms, bytes_out, position)
   select 'call-' || n, 'api', 'owner/model-' || n % ${MODELS}, 'worker-' || n % ${WORKERS}, '/v1/chat/completions',
     case when n % 3 = 0 then 'key-' || n / 7 % ${KEYS} end,
     case when n % 1000 = 0 then 'failed' else 'completed' end, case when n % 1000 = 0 then 502 else 200 end,
     'resident-' || n / 500 % 20000, 'Q4_K_M', 1, t, t + interval '20 ms', t + interval '2 s', 100, 50, 20, 1000, 4000, n * 100
   from (select n, timestamptz '${SEED_END}' - (${CALLS} - n) * interval '100 ms' as t
         from generate_series(1, ${CALLS}) n) made`,
  `insert into residents (resident_id, worker_id, model_key, phase, leaving_started, decision_id, decided_at,
     load_started_at, ready_at, ended_at, end_reason, position)
   select 'resident-' || n, 'worker-' || n % ${WORKERS}, 'owner/model-' || n % ${MODELS},
     case when n < 19970 then 'ended' else 'ready' end, false, 'decision-' || n, t, t, t + interval '3 s',
     case when n < 19970 then t + interval '60 s' end, case when n < 19970 then 'evicted' end, n * 100
   from (select n, timestamptz '${SEED_END}' - (20000 - n) * interval '50 s' as t from generate_series(0, 19999) n) made`,
  `insert into decisions (decision_id, event_id, worker_id, admitted, cause, call_id, model_key, victims, state, decided_at, position)
   select 'decision-' || n, gen_random_uuid(), 'worker-' || n % ${WORKERS}, n % 10 <> 1, 'call', 'call-' || n,
     'owner/model-' || n % ${MODELS}, '{}', case when n % 10 <> 1 then 'ready' else 'refused' end,
     timestamptz '${SEED_END}' - (200000 - n) * interval '5 s', n * 100
   from generate_series(0, 199999) n`,
  `insert into evictions (eviction_id, resident_id, worker_id, model_key, reason, state, freed_bytes, seconds, started_at, ended_at, position)
   select 'eviction-' || n, 'resident-' || n % 20000, 'worker-' || n % ${WORKERS}, 'owner/model-' || n % ${MODELS}, 'room', 'done', 1, 1,
     timestamptz '${SEED_END}' - (100000 - n) * interval '10 s', timestamptz '${SEED_END}' - (100000 - n) * interval '10 s', n * 100
   from generate_series(0, 99999) n`,
  `insert into load_history (event_id, worker_id, model_key, kind, artifact, class_key, class, context_tokens, slots, kv_type,
     engine_build, measured_bytes, predicted_bytes, seconds, at, position)
   select gen_random_uuid(), 'worker-' || n % ${WORKERS}, 'owner/model-' || n % ${MODELS}, 'measured', 'Q4_K_M', 'Q4_K_M|class-' || n % ${CLASSES}, '{}', 8192, 1,
     'f16', 'b1', 1000, 1010, 2, timestamptz '${SEED_END}' - (50000 - n) * interval '20 s', n * 100
   from generate_series(0, 49999) n`,
  `insert into usage_hours
   select date_trunc('hour', received_at), model_key, coalesce(key_id, ''), count(*),
     count(*) filter (where outcome = 'completed'), count(*) filter (where outcome = 'failed'), 0, 0,
     sum(prompt_tokens), 0, sum(output_tokens), 0, sum(prompt_ms), sum(decode_ms), count(*) * 20, sum(bytes_out)
   from calls group by 1, 2, 3`,
  `insert into usage_days
   select date_trunc('day', hour at time zone 'UTC') at time zone 'UTC', model_key, key_id, sum(calls), sum(completed),
     sum(failed), 0, 0, sum(prompt_tokens), 0, sum(output_tokens), 0, sum(prompt_ms), sum(decode_ms), sum(waited_ms), sum(bytes_out)
   from usage_hours group by 1, 2, 3`,
  `insert into days
   select date_trunc('day', decided_at at time zone 'UTC') at time zone 'UTC', count(*), 1000, 1, 1, count(*), 1
   from decisions group by 1`,
  `insert into size_accuracy
   select model_key, worker_id, class_key, 'Q4_K_M', 'b1', count(*), 1000, 1000, 1, 1, max(at)
   from load_history group by 1, 2, 3`,
  `insert into models (worker_id, model_key, aliases, root, path, kind, framework, smoke, artifacts, hashes, abilities,
     attachments, found_at, changed_at, position)
   select 'worker-' || n % ${WORKERS}, 'owner/model-' || n, '{}', 'berth', 'm', 'chat', 'gguf', false,
     '[{"label":"Q4_K_M","complete":true,"files":[{"name":"a","bytes":5}]}]', '{}', '{}', '[]', now(), now(), n
   from generate_series(0, 499) n`,
  `insert into api_keys (key_id, name, scope, issued_at, position) select 'key-' || n, 'k', 'use', now(), n from generate_series(0, 999) n`,
  `insert into operator_actions (action_id, worker_id, action, by_whom, state, requested_at, ended_at, position)
   select 'a-' || n, 'worker-' || n % ${WORKERS}, 'evict', 'local', 'done', now(), now(), n from generate_series(0, 9999) n`,
  `insert into workers (worker_id, engines, drives, limits, pins, device_ids, lost, changed_at, position)
   select 'worker-' || n, '[]', '[]', '{}', '{}', '{}', false, now(), n from generate_series(0, ${WORKERS - 1}) n`,
];

const made = <T extends object>(type: new () => T, fields: object): T => plainToInstance(type, fields);
const calls = (fields: object) => (db: ViewsDb) => callsPage(db, made(CallsQuery, fields)).execute();
const middle = encodeCursor(String((CALLS / 2) * 100));

const PAGES: Readonly<Record<string, (db: ViewsDb) => Promise<unknown>>> = {
  'calls, newest': calls({}),
  'calls, from the middle': calls({ after: middle }),
  'calls of a model': calls({ model: 'owner/model-7' }),
  'calls of a model, from the middle': calls({ model: 'owner/model-7', after: middle }),
  'calls of a key': calls({ key: 'key-3' }),
  'calls of a worker': calls({ worker: 'worker-2' }),
  'calls of a resident': calls({ resident: 'resident-77' }),
  'calls that failed': calls({ outcome: 'failed' }),
  'calls that run': calls({ outcome: 'running' }),
  'calls of an hour long ago': calls({
    since: daysBack(8),
    until: new Date(END_MS - 8 * 86_400_000 + 3_600_000).toISOString(),
  }),
  'calls until long ago': calls({ until: daysBack(10) }),
  residents: (db) => residentsPage(db, made(ResidentsQuery, {})).execute(),
  'residents, ended': (db) => residentsPage(db, made(ResidentsQuery, { state: 'all' })).execute(),
  decisions: (db) => decisionsPage(db, made(DecisionsQuery, {})).execute(),
  'decisions refused, of a worker': (db) =>
    decisionsPage(db, made(DecisionsQuery, { state: 'refused', worker: 'worker-1' })).execute(),
  evictions: (db) => evictionsPage(db, made(EvictionsQuery, {})).execute(),
  'evictions of a model': (db) =>
    evictionsPage(db, made(EvictionsQuery, { model: 'owner/model-7' })).execute(),
  'history of a pair': (db) =>
    loadsPage(db, { workerId: 'worker-3', modelKey: 'owner/model-7' }, made(HistoryQuery, {})).execute(),
  accuracy: (db) => accuracyPage(db, made(AccuracyQuery, {})).execute(),
  'usage by day': (db) => usagePage(db, made(UsageQuery, {}), END_MS).execute(),
  'usage by model and key': (db) => usagePage(db, made(UsageQuery, { by: 'model,key' }), END_MS).execute(),
  'usage by hour and model': (db) => usagePage(db, made(UsageQuery, { by: 'hour,model' }), END_MS).execute(),
  'usage by hour and model, from the middle': (db) =>
    usagePage(
      db,
      made(UsageQuery, { by: 'hour,model', after: encodeCursor(daysBack(5), 'm', '') }),
      END_MS,
    ).execute(),
  'usage of a model by day': (db) =>
    usagePage(db, made(UsageQuery, { model: 'owner/model-7' }), END_MS).execute(),
  'usage between two hours': (db) =>
    usagePage(
      db,
      made(UsageQuery, { by: 'model', since: '2026-01-22T05:00:00Z', until: '2026-01-29T17:00:00Z' }),
      END_MS,
    ).execute(),
  models: (db) => modelsPage(db, made(ModelsQuery, {})).execute(),
  keys: (db) => keysPage(db, made(ListQuery, {})).execute(),
  'operator actions of a worker': (db) =>
    actionsPage(db, made(ActionsQuery, { worker: 'worker-1' })).execute(),
  'what lies on disks': (db) => storedArtifacts(db).execute(),
  daily: (db) => dailyRows(db, daysBack(30), SEED_END).execute(),
};

const postgres = await startPostgres();
try {
  const session = await openSession(await postgres.createDatabase(), { applicationName: 'views-bench' });
  const indexes = await makeBeside(session, VIEWS_SCHEMA);
  await session.client.query(`set search_path to ${VIEWS_SCHEMA}`);
  const startedMs = performance.now();
  await session.client.query(`set maintenance_work_mem to '512MB'`);
  for (const seed of SEEDS) await session.client.query(seed);
  await makeIndexes(session.db, indexes);
  await session.client.query('analyze');
  console.log(
    `${CALLS.toLocaleString('en')} calls were made in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`,
  );
  const db = session.db.withSchema(VIEWS_SCHEMA);
  const { rows } = await session.client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid ?? 0;
  let slow = 0;
  console.log('page'.padEnd(42), 'p50'.padStart(9), 'p99'.padStart(9), 'cpu'.padStart(9));
  for (const [name, page] of Object.entries(PAGES)) {
    await page(db);
    const cpuFromMs = cpuMs(pid);
    const tookMs: number[] = [];
    for (let run = 0; run < RUNS; run += 1) {
      const from = performance.now();
      await page(db);
      tookMs.push(performance.now() - from);
    }
    const sorted = ascending(tookMs);
    const at = (part: number) => quantile(sorted, part);
    if (at(0.5) > LIMIT_MS) slow += 1;
    console.log(
      name.padEnd(42),
      `${at(0.5).toFixed(1)} ms`.padStart(9),
      `${at(0.99).toFixed(1)} ms`.padStart(9),
      `${((cpuMs(pid) - cpuFromMs) / RUNS).toFixed(1)} ms`.padStart(9),
    );
  }
  console.log(
    slow === 0
      ? `every page took less than ${LIMIT_MS} ms (p50)`
      : `${slow} pages took more than ${LIMIT_MS} ms`,
  );
  if (process.argv.includes('--check') && slow > 0) process.exitCode = 1;
  await session.close();
} finally {
  await postgres.stop();
}
