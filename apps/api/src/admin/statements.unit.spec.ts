import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { recordedDb } from '#schema/testing/recorded-db.js';
import { AccuracyQuery } from './accuracy/accuracy.dto.js';
import { AccuracyRepository } from './accuracy/accuracy.repository.js';
import { REPOSITORIES } from './admin.module.js';
import { CallsQuery } from './calls/calls.dto.js';
import { CallsRepository } from './calls/calls.repository.js';
import { viewsPosition } from './commands/wait.interceptor.js';
import { DecisionsQuery } from './decisions/decisions.dto.js';
import { DecisionsRepository } from './decisions/decisions.repository.js';
import { EvictionsQuery } from './evictions/evictions.dto.js';
import { EvictionsRepository } from './evictions/evictions.repository.js';
import { HistoryQuery } from './history/history.dto.js';
import { HistoryRepository } from './history/history.repository.js';
import { KeysRepository } from './keys/keys.repository.js';
import { ModelsQuery } from './models/models.dto.js';
import { ModelsRepository } from './models/models.repository.js';
import { ActionsQuery } from './operator/operator.dto.js';
import { OperatorRepository } from './operator/operator.repository.js';
import { ListQuery } from './paging/list-query.dto.js';
import { PullsQuery, PullsRepository } from './pulls/pulls.repository.js';
import { ReplayRepository } from './replay/replay.repository.js';
import { ResidentsQuery } from './residents/residents.dto.js';
import { ResidentsRepository } from './residents/residents.repository.js';
import { StorageRepository } from './storage/storage.controller.js';
import { TELEMETRY_TABLES } from './telemetry/telemetry.service.js';
import { DailyRepository } from './usage/daily.repository.js';
import { UsageQuery } from './usage/usage.dto.js';
import { UsageRepository } from './usage/usage.repository.js';
import { ViewsReader } from './views/views-reader.js';
import { WhatIfNightsRepository } from './what-if/what-if-nights.controller.js';
import { WorkersRepository } from './workers/workers.repository.js';

/** It gives one row of whatever it is asked for. */
const { db, asked } = recordedDb(() => [
  { worker_id: 'w', model_key: 'm', limits: { designation: {}, setting: {} } },
]);
const views = new ViewsReader(db);
const pair = { workerId: 'w', modelKey: 'm' };

/** Every method of every repository, and what it asks of Postgres. */
const METHODS: Readonly<Record<string, () => Promise<unknown>>> = {
  'AccuracyRepository.page': () => new AccuracyRepository(views).page(new AccuracyQuery()),
  'CallsRepository.page': () => new CallsRepository(views).page(new CallsQuery()),
  'CallsRepository.find': () => new CallsRepository(views).find('c'),
  'DailyRepository.rows': () => new DailyRepository(views).rows('2026-01-01', '2026-01-31'),
  'DailyRepository.first': () => new DailyRepository(views).first(),
  'DecisionsRepository.page': () => new DecisionsRepository(views).page(new DecisionsQuery()),
  'DecisionsRepository.ofCall': () => new DecisionsRepository(views).ofCall('c'),
  'DecisionsRepository.find': () => new DecisionsRepository(views).find('d'),
  'DecisionsRepository.working': () => new DecisionsRepository(views).working('d'),
  'EvictionsRepository.page': () => new EvictionsRepository(views).page(new EvictionsQuery()),
  'HistoryRepository.loads': () => new HistoryRepository(views).loads(pair, new HistoryQuery()),
  'HistoryRepository.serving': () => new HistoryRepository(views).serving(pair, new HistoryQuery()),
  'HistoryRepository.loadOf': () => new HistoryRepository(views).loadOf('r'),
  'KeysRepository.page': () => new KeysRepository(views).page(new ListQuery()),
  'ModelsRepository.page': () => new ModelsRepository(views).page(new ModelsQuery()),
  'ModelsRepository.find': () => new ModelsRepository(views).find('m'),
  'OperatorRepository.page': () => new OperatorRepository(views).page(new ActionsQuery()),
  'OperatorRepository.find': () => new OperatorRepository(views).find('a'),
  'PullsRepository.page': () => new PullsRepository(views).page(new PullsQuery()),
  'PullsRepository.find': () => new PullsRepository(views).find('p'),
  'ReplayRepository.isFree': () => new ReplayRepository(views).isFree(),
  'ResidentsRepository.page': () => new ResidentsRepository(views).page(new ResidentsQuery()),
  'ResidentsRepository.find': () => new ResidentsRepository(views).find('r'),
  'StorageRepository.read': () => new StorageRepository(views).read(),
  'UsageRepository.page': () => new UsageRepository(views).page(new UsageQuery()),
  'UsageRepository.keyNames': () => new UsageRepository(views).keyNames(['k']),
  'WhatIfNightsRepository.page': () => new WhatIfNightsRepository(views).page(new ListQuery()),
  'WorkersRepository.page': () => new WorkersRepository(views).page(new ListQuery()),
  'views position': () => views.read((of) => viewsPosition(of).executeTakeFirst()),
  ...Object.fromEntries(
    Object.entries(TELEMETRY_TABLES).map(([name, { read }]) => [
      `telemetry ${name}`,
      () => views.read<unknown>((of) => read(of, ['x']).catch(() => undefined)),
    ]),
  ),
};

const STATEMENTS: Readonly<Record<string, readonly string[]>> = {
  'AccuracyRepository.page': [
    'select * from "views"."size_accuracy" order by "model_key", "worker_id", "class_key" limit $1',
  ],
  'CallsRepository.page': ['select * from "views"."calls" order by "position" desc limit $1'],
  'CallsRepository.find': ['select * from "views"."calls" where "call_id" = $1'],
  'DailyRepository.rows': [
    'select coalesce(c.day, d.day) as "day", coalesce("calls", 0) as "calls", coalesce("completed", 0) as "completed", coalesce("failed", 0) as "failed", coalesce("abandoned", 0) as "abandoned", coalesce("refused", 0) as "refused", coalesce("prompt_tokens", 0) as "promptTokens", coalesce("output_tokens", 0) as "outputTokens", coalesce("waited_ms", 0) as "waitedMs", coalesce("loads", 0) as "loads", coalesce(load_ms, 0)::double precision / 1000 as "loadSeconds", coalesce("failed_loads", 0) as "failedLoads", coalesce("evictions", 0) as "evictions", coalesce("decisions", 0) as "decisions", coalesce("refusals", 0) as "refusals" from (select "day", sum("calls")::bigint as "calls", sum("completed")::bigint as "completed", sum("failed")::bigint as "failed", sum("abandoned")::bigint as "abandoned", sum("refused")::bigint as "refused", sum("prompt_tokens")::bigint as "prompt_tokens", sum("output_tokens")::bigint as "output_tokens", sum("waited_ms")::bigint as "waited_ms" from "views"."usage_days" where "day" >= $1 and "day" < $2 group by "day") as "c" full join (select * from "views"."days" where "day" >= $3 and "day" < $4) as "d" on "d"."day" = "c"."day" order by "day" desc',
  ],
  'DailyRepository.first': [
    'select min("day") as "at" from "views"."usage_days"',
    'select min("day") as "at" from "views"."days"',
  ],
  'DecisionsRepository.page': ['select * from "views"."decisions" order by "position" desc limit $1'],
  'DecisionsRepository.ofCall': [
    'select * from "views"."decisions" where "call_id" = $1 order by "position"',
  ],
  'DecisionsRepository.find': ['select * from "views"."decisions" where "decision_id" = $1'],
  'DecisionsRepository.working': ['select * from "views"."decision_workings" where "decision_id" = $1'],
  'EvictionsRepository.page': ['select * from "views"."evictions" order by "position" desc limit $1'],
  'HistoryRepository.loads': [
    'select * from "views"."load_history" where "worker_id" = $1 and "model_key" = $2 order by "position" desc limit $3',
  ],
  'HistoryRepository.serving': [
    'select * from "views"."serving_history" where "worker_id" = $1 and "model_key" = $2 order by "position" desc limit $3',
  ],
  'HistoryRepository.loadOf': [
    'select * from "views"."load_history" where "resident_id" = $1 and "kind" = $2 order by "position" desc limit $3',
  ],
  'KeysRepository.page': [
    'select "key_id", "name", "scope", "expires_at", "issued_at", "revoked_at", "revoked_by", "position" from "views"."api_keys" order by "position" desc limit $1',
  ],
  'ModelsRepository.page': [
    'select "m".*, "w"."name" as "worker_name", "l"."load_seconds", "l"."measured_bytes", "l"."measured_at", "l"."measured_by" from "views"."models" as "m" left join "views"."workers" as "w" on "w"."worker_id" = "m"."worker_id" left join lateral (select "h"."seconds" as "load_seconds", "h"."measured_bytes", "h"."at" as "measured_at", "h"."event_id" as "measured_by" from "views"."load_history" as "h" where "h"."worker_id" = "m"."worker_id" and "h"."model_key" = "m"."model_key" and "h"."kind" = $1 order by "h"."position" desc limit $2) as "l" on true where "m"."gone_at" is null order by "m"."model_key", "m"."worker_id" limit $3',
    'select "worker_id", "model_key", "resident_id", "phase", "artifact", "context_tokens" from "views"."residents" where "phase" <> $1 and "model_key" in ($2) order by "position"',
  ],
  'ModelsRepository.find': [
    'select "m".*, "w"."name" as "worker_name", "l"."load_seconds", "l"."measured_bytes", "l"."measured_at", "l"."measured_by" from "views"."models" as "m" left join "views"."workers" as "w" on "w"."worker_id" = "m"."worker_id" left join lateral (select "h"."seconds" as "load_seconds", "h"."measured_bytes", "h"."at" as "measured_at", "h"."event_id" as "measured_by" from "views"."load_history" as "h" where "h"."worker_id" = "m"."worker_id" and "h"."model_key" = "m"."model_key" and "h"."kind" = $1 order by "h"."position" desc limit $2) as "l" on true where "m"."model_key" = $3 order by "m"."worker_id"',
    'select "worker_id", "model_key", "resident_id", "phase", "artifact", "context_tokens" from "views"."residents" where "phase" <> $1 and "model_key" in ($2) order by "position"',
  ],
  'OperatorRepository.page': ['select * from "views"."operator_actions" order by "position" desc limit $1'],
  'OperatorRepository.find': ['select * from "views"."operator_actions" where "action_id" = $1'],
  'PullsRepository.page': ['select * from "views"."pulls" order by "position" desc limit $1'],
  'PullsRepository.find': ['select * from "views"."pulls" where "pull_id" = $1'],
  'ReplayRepository.isFree': ['select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as free'],
  'ResidentsRepository.page': [
    'select "r".*, "w"."name" as "worker_name", "l"."last_call_at" from "views"."residents" as "r" left join "views"."workers" as "w" on "w"."worker_id" = "r"."worker_id" left join lateral (select "c"."received_at" as "last_call_at" from "views"."calls" as "c" where "c"."resident_id" = "r"."resident_id" order by "c"."received_at" desc limit $1) as "l" on true where "r"."phase" <> $2 order by "r"."position" desc limit $3',
  ],
  'ResidentsRepository.find': [
    'select "r".*, "w"."name" as "worker_name", "l"."last_call_at" from "views"."residents" as "r" left join "views"."workers" as "w" on "w"."worker_id" = "r"."worker_id" left join lateral (select "c"."received_at" as "last_call_at" from "views"."calls" as "c" where "c"."resident_id" = "r"."resident_id" order by "c"."received_at" desc limit $1) as "l" on true where "r"."resident_id" = $2',
  ],
  'StorageRepository.read': [
    'select * from "views"."stored_artifacts" order by "bytes" desc, "model_key", "artifact"',
    'select * from "views"."storage_drives" order by "worker_id", "mount"',
    'select "worker_id", "name", "limits", "drives", "changed_at" from "views"."workers" order by "worker_id"',
  ],
  'UsageRepository.page': [
    'select * from (select "time", sum("calls")::bigint as "calls", sum("completed")::bigint as "completed", sum("failed")::bigint as "failed", sum("abandoned")::bigint as "abandoned", sum("refused")::bigint as "refused", sum("prompt_tokens")::bigint as "prompt_tokens", sum("cached_tokens")::bigint as "cached_tokens", sum("output_tokens")::bigint as "output_tokens", sum("reasoning_tokens")::bigint as "reasoning_tokens", sum("prompt_ms")::bigint as "prompt_ms", sum("decode_ms")::bigint as "decode_ms", sum("waited_ms")::bigint as "waited_ms", sum("bytes_out")::bigint as "bytes_out" from (select "day" as "time", "model_key", "key_id", "calls", "completed", "failed", "abandoned", "refused", "prompt_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "prompt_ms", "decode_ms", "waited_ms", "bytes_out" from "views"."usage_days" where "day" >= $1) as "c" group by "time") as "u" order by "time" desc limit $2',
  ],
  'UsageRepository.keyNames': ['select "key_id", "name" from "views"."api_keys" where "key_id" in ($1)'],
  'WhatIfNightsRepository.page': ['select * from "views"."what_if_nights" order by "day" desc limit $1'],
  'WorkersRepository.page': [
    'select * from "views"."workers" order by "worker_id" limit $1',
    'select * from "views"."devices" where "worker_id" in ($1) and "present" = $2 order by "worker_id", "ordinal"',
    'select "worker_id", "predicted_memory", "measured_memory" from "views"."residents" where "worker_id" in ($1) and "phase" <> $2',
  ],
  'views position': ['select "commit_position" from "views"."checkpoints" where "name" = $1'],
  'telemetry calls': ['select * from "views"."calls" where "call_id" in ($1)'],
  'telemetry residents': ['select * from "views"."residents" where "resident_id" in ($1)'],
  'telemetry decisions': ['select * from "views"."decisions" where "decision_id" in ($1)'],
  'telemetry evictions': ['select * from "views"."evictions" where "resident_id" in ($1)'],
  'telemetry operator': ['select * from "views"."operator_actions" where "action_id" in ($1)'],
  'telemetry pulls': ['select * from "views"."pulls" where "pull_id" in ($1)'],
};

describe('the statements over the views', () => {
  it.each(Object.entries(METHODS))('%s', async (name, method) => {
    const before = asked.length;
    await method();
    expect(asked.slice(before)).toEqual(STATEMENTS[name]);
  });

  it('are those of every method of every repository', () => {
    const methods = REPOSITORIES.flatMap((repository) =>
      Object.getOwnPropertyNames(repository.prototype)
        .filter((name) => name !== 'constructor')
        .map((name) => `${repository.name}.${name}`),
    );
    expect(Object.keys(METHODS)).toEqual(expect.arrayContaining(methods));
    expect(Object.keys(STATEMENTS).sort()).toEqual(Object.keys(METHODS).sort());
  });
});
