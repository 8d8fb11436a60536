-- What the settings, key, operator and pull streams say, usage and accuracy; and a memory of repeated events that does
-- not grow with the log.

-- Ids of the last events of each stream, so that a fact which a retry appended twice counts once. As many as every
-- other reader of the log remembers: what counts depends on the log alone.
drop table applied_events;
create table recent_events (
  stream text primary key,
  event_ids text[] not null
);

-- What was set at each scope, and by which event: `fleet`, a worker, a pair (`<workerId>~<modelKey>`).
create table settings (
  scope text not null,
  name text not null,
  level text not null,
  -- Null in a row that was taken back: the name is inherited again.
  value jsonb,
  is_set boolean not null,
  by_whom text not null,
  event_id text not null,
  changed_at timestamptz not null,
  position numeric(20) not null,
  primary key (scope, name)
);

create table api_keys (
  key_id text primary key,
  name text,
  scope text,
  sha256 text,
  expires_at timestamptz,
  issued_at timestamptz,
  revoked_at timestamptz,
  revoked_by text,
  position numeric(20) not null
);
create index api_keys_by_position on api_keys (position desc);

create table operator_actions (
  action_id text primary key,
  worker_id text not null,
  action text,
  target text,
  by_whom text,
  -- requested, running, then what its end says (done, failed)
  state text not null,
  result text,
  requested_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  position numeric(20) not null
);
create index operator_actions_by_position on operator_actions (position desc);
create index operator_actions_by_worker on operator_actions (worker_id, position desc);

create table pulls (
  pull_id text primary key,
  worker_id text not null,
  source text,
  by_whom text,
  -- running, finished, refused, failed
  state text not null,
  reason text,
  -- [{file, bytes, seconds, resumedFromBytes, sha256?}]
  files jsonb not null,
  pulled_bytes bigint not null,
  requested_at timestamptz,
  ended_at timestamptz,
  position numeric(20) not null
);
create index pulls_by_position on pulls (position desc);
create index pulls_by_worker on pulls (worker_id, position desc);

-- Finished calls, by the hour in which they were received. An empty key: called without one.
create table usage_hours (
  hour timestamptz not null,
  model_key text not null,
  key_id text not null,
  calls bigint not null,
  completed bigint not null,
  failed bigint not null,
  abandoned bigint not null,
  refused bigint not null,
  prompt_tokens bigint not null,
  cached_tokens bigint not null,
  output_tokens bigint not null,
  reasoning_tokens bigint not null,
  prompt_ms bigint not null,
  decode_ms bigint not null,
  -- From received to forwarded, of calls that were.
  waited_ms bigint not null,
  bytes_out bigint not null,
  primary key (hour, model_key, key_id)
);
create index usage_hours_by_model on usage_hours (model_key, hour desc);
create index usage_hours_by_key on usage_hours (key_id, hour desc) where key_id <> '';

create view usage_days as
  select date_trunc('day', hour at time zone 'UTC') at time zone 'UTC' as day, model_key, key_id,
    sum(calls)::bigint as calls, sum(completed)::bigint as completed, sum(failed)::bigint as failed,
    sum(abandoned)::bigint as abandoned, sum(refused)::bigint as refused,
    sum(prompt_tokens)::bigint as prompt_tokens, sum(cached_tokens)::bigint as cached_tokens,
    sum(output_tokens)::bigint as output_tokens, sum(reasoning_tokens)::bigint as reasoning_tokens,
    sum(prompt_ms)::bigint as prompt_ms, sum(decode_ms)::bigint as decode_ms,
    sum(waited_ms)::bigint as waited_ms, sum(bytes_out)::bigint as bytes_out
  from usage_hours group by 1, 2, 3;

-- How well sizes were predicted, by pair and class: the error is measured minus predicted, in parts of the measured.
create view size_accuracy as
  select worker_id, model_key, artifact, class_key, engine_build,
    count(*)::bigint as loads,
    avg(abs(measured_bytes - predicted_bytes)::double precision / measured_bytes) as mean_error,
    max(abs(measured_bytes - predicted_bytes)::double precision / measured_bytes) as worst_error,
    max(measured_bytes - predicted_bytes) as most_above_bytes,
    max(predicted_bytes - measured_bytes) as most_below_bytes,
    max(at) as last_at
  from load_history
  where kind = 'measured' and measured_bytes > 0 and predicted_bytes > 0
  group by worker_id, model_key, artifact, class_key, engine_build;

-- How well times were predicted, by model and engine build: the error is actual minus predicted, in seconds.
create view load_time_accuracy as
  select r.worker_id, r.model_key, r.artifact, r.engine_kind, r.engine_build,
    count(*)::bigint as loads,
    avg(abs(d.actual_load_seconds - d.predicted_load_seconds)) as mean_error_seconds,
    max(abs(d.actual_load_seconds - d.predicted_load_seconds)) as worst_error_seconds,
    avg(d.actual_load_seconds) as mean_seconds,
    max(d.ended_at) as last_at
  from decisions d join residents r on r.resident_id = d.resident_id
  where d.state = 'ready' and d.predicted_load_seconds is not null and d.actual_load_seconds is not null
  group by r.worker_id, r.model_key, r.artifact, r.engine_kind, r.engine_build;

-- What models take on disk, by artifact.
create view stored_artifacts as
  select m.worker_id, m.model_key, m.root, m.path, a.value ->> 'label' as artifact,
    (a.value ->> 'complete')::boolean as complete,
    a.value ->> 'broken' as broken,
    (select coalesce(sum((f.value ->> 'bytes')::bigint), 0)::bigint
       from jsonb_array_elements(a.value -> 'files') f) as bytes,
    m.position
  from models m cross join lateral jsonb_array_elements(m.artifacts) a
  where m.gone_at is null;

-- Drives of each worker as they were last measured.
create view storage_drives as
  select w.worker_id, d.value ->> 'mount' as mount,
    (d.value ->> 'totalBytes')::bigint as total_bytes,
    (d.value ->> 'freeBytes')::bigint as free_bytes,
    w.changed_at
  from workers w cross join lateral jsonb_array_elements(w.drives) d;

-- One row per day with everything that happened: the nightly summary.
create index residents_by_ready on residents (ready_at) where ready_at is not null;
create index decisions_by_time on decisions (decided_at);
create index evictions_by_end on evictions (ended_at) where ended_at is not null;
create view daily_summary as
  with events as (
    select day, calls, completed, failed, abandoned, refused, prompt_tokens, output_tokens, waited_ms,
      0::bigint as loads, 0::double precision as load_seconds, 0::bigint as failed_loads,
      0::bigint as evictions, 0::bigint as decisions, 0::bigint as refusals
    from usage_days
    union all
    select date_trunc('day', ready_at at time zone 'UTC') at time zone 'UTC', 0, 0, 0, 0, 0, 0, 0, 0,
      1, coalesce(extract(epoch from ready_at - load_started_at)::double precision, 0), 0, 0, 0, 0
    from residents where ready_at is not null
    union all
    select date_trunc('day', ended_at at time zone 'UTC') at time zone 'UTC', 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 1, 0, 0
    from evictions where state = 'done' and ended_at is not null
    union all
    select date_trunc('day', decided_at at time zone 'UTC') at time zone 'UTC', 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, case when state = 'failed' then 1 else 0 end, 0,
      case when admitted then 1 else 0 end, case when admitted then 0 else coalesce(refusals, 1) end
    from decisions
  )
  select day,
    sum(calls)::bigint as calls, sum(completed)::bigint as completed, sum(failed)::bigint as failed,
    sum(abandoned)::bigint as abandoned, sum(refused)::bigint as refused,
    sum(prompt_tokens)::bigint as prompt_tokens, sum(output_tokens)::bigint as output_tokens,
    sum(waited_ms)::bigint as waited_ms, sum(loads)::bigint as loads, sum(load_seconds) as load_seconds,
    sum(failed_loads)::bigint as failed_loads, sum(evictions)::bigint as evictions,
    sum(decisions)::bigint as decisions, sum(refusals)::bigint as refusals
  from events group by day;
