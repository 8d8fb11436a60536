-- Sums that lists would make of many rows at each read are kept as rows, from the events that change them. Every figure is
-- a whole number, so that it does not depend on the order in which it was summed.
drop view daily_summary;
drop view usage_days;
drop view size_accuracy;
drop index residents_by_ready;
drop index decisions_by_time;
drop index evictions_by_end;
create index decisions_by_worker_and_state on decisions (worker_id, state, position desc);

-- `usage_hours` by the UTC day.
create table usage_days (
  day timestamptz not null,
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
  waited_ms bigint not null,
  bytes_out bigint not null,
  primary key (day, model_key, key_id)
);
create index usage_days_by_model on usage_days (model_key, day desc);
create index usage_days_by_key on usage_days (key_id, day desc) where key_id <> '';
insert into usage_days
  select date_trunc('day', hour at time zone 'UTC') at time zone 'UTC', model_key, key_id,
    sum(calls), sum(completed), sum(failed), sum(abandoned), sum(refused), sum(prompt_tokens), sum(cached_tokens),
    sum(output_tokens), sum(reasoning_tokens), sum(prompt_ms), sum(decode_ms), sum(waited_ms), sum(bytes_out)
  from usage_hours group by 1, 2, 3;

-- What happened on a UTC day beside calls.
create table days (
  day timestamptz primary key,
  loads bigint not null,
  load_ms bigint not null,
  failed_loads bigint not null,
  evictions bigint not null,
  decisions bigint not null,
  refusals bigint not null
);
insert into days
  select day, sum(loads), sum(load_ms), sum(failed_loads), sum(evictions), sum(decisions), sum(refusals)
  from (
    select date_trunc('day', ready_at at time zone 'UTC') at time zone 'UTC' as day, 1 as loads,
      coalesce(round(extract(epoch from ready_at - load_started_at) * 1000), 0)::bigint as load_ms,
      0 as failed_loads, 0 as evictions, 0 as decisions, 0 as refusals
    from residents where ready_at is not null
    union all
    select date_trunc('day', ended_at at time zone 'UTC') at time zone 'UTC', 0, 0, 0, 1, 0, 0
    from evictions where state = 'done'
    union all
    select date_trunc('day', decided_at at time zone 'UTC') at time zone 'UTC', 0, 0,
      case when state = 'failed' then 1 else 0 end, 0,
      case when admitted then 1 else 0 end, case when admitted then 0 else coalesce(refusals, 1) end
    from decisions
  ) happened group by day;

-- How well sizes were predicted, by pair and class: the error is measured minus predicted, in millionths of the measured.
create table size_accuracy (
  model_key text not null,
  worker_id text not null,
  class_key text not null,
  artifact text not null,
  engine_build text not null,
  loads bigint not null,
  error_millionths bigint not null,
  worst_millionths bigint not null,
  most_above_bytes bigint not null,
  most_below_bytes bigint not null,
  last_at timestamptz not null,
  primary key (model_key, worker_id, class_key)
);
create index size_accuracy_by_worker on size_accuracy (worker_id, model_key, class_key);
insert into size_accuracy
  select model_key, worker_id, class_key, min(artifact), min(engine_build), count(*),
    sum(floor(abs(measured_bytes - predicted_bytes)::double precision / measured_bytes * 1000000)::bigint),
    max(floor(abs(measured_bytes - predicted_bytes)::double precision / measured_bytes * 1000000)::bigint),
    max(measured_bytes - predicted_bytes), max(predicted_bytes - measured_bytes), max(at)
  from load_history
  where kind = 'measured' and measured_bytes > 0 and predicted_bytes > 0
  group by 1, 2, 3;
