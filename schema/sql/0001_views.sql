-- The read side: everything here is folded from the event log and can be folded again.
-- Names carry no schema: the runner sets the search path, so that a rebuild can fold into a second schema beside the
-- live one and swap the two by renaming them.
--
-- Positions are those of the log ($all): unsigned 64 bits, opaque, only compared. Bytes are whole numbers below 2^53.

create table checkpoints (
  name text primary key,
  log_id text not null,
  -- Null until the first event was folded.
  commit_position numeric(20),
  prepare_position numeric(20),
  updated_at timestamptz not null
);

-- Ids of the events that were folded, of all types whose own rows cannot tell a second copy: a retry can write twice.
create table applied_events (
  event_id uuid primary key,
  position numeric(20) not null
);

-- Events that no view could take, with the reason. Empty on a sound log.
create table set_aside_events (
  event_id uuid primary key,
  position numeric(20) not null,
  stream text not null,
  revision bigint not null,
  type text not null,
  error text not null,
  at timestamptz not null
);

create table workers (
  worker_id text primary key,
  name text,
  host text,
  data_address text,
  agent_version text,
  os text,
  boot_id text,
  engines jsonb not null,
  ram_bytes bigint,
  swap_bytes bigint,
  physical_cores integer,
  memory_bandwidth jsonb,
  drives jsonb not null,
  -- {designation: {resource: value}, setting: {resource: value}}
  limits jsonb not null,
  pins text[] not null,
  device_ids text[] not null,
  lost boolean not null,
  last_seen_at timestamptz,
  registered_at timestamptz,
  changed_at timestamptz not null,
  position numeric(20) not null
);

create table devices (
  worker_id text not null,
  -- `ram`, or the accelerator's stable id.
  device_id text not null,
  ordinal integer not null,
  kind text,
  name text,
  uuid text,
  total_bytes bigint,
  driver_reserved_bytes bigint,
  compute_capability text,
  -- Upper edge of the 128 MiB step that other programs' use lies in; null before the first reading.
  foreign_bytes bigint,
  foreign_processes jsonb,
  present boolean not null,
  changed_at timestamptz not null,
  primary key (worker_id, device_id)
);

create table models (
  worker_id text not null,
  model_key text not null,
  aliases text[] not null,
  root text not null,
  path text not null,
  kind text not null,
  framework text not null,
  smoke boolean not null,
  marker jsonb,
  -- Best first; as found, headers included.
  artifacts jsonb not null,
  -- {file: {bytes, sha256}}
  hashes jsonb not null,
  found_at timestamptz not null,
  changed_at timestamptz not null,
  gone_at timestamptz,
  position numeric(20) not null,
  primary key (worker_id, model_key)
);
create index models_by_key on models (model_key, worker_id);

create table residents (
  resident_id text primary key,
  worker_id text not null,
  decision_id text,
  model_key text,
  artifact text,
  rung text,
  kind text,
  -- planned, loading, ready, ended
  phase text not null,
  -- While it is asked to leave: why, by which decision, and whether the eviction has begun.
  leaving_reason text,
  leaving_decision_id text,
  leaving_started boolean not null,
  -- The eviction that runs or ended it.
  eviction_id text,
  engine_kind text,
  engine_version text,
  engine_build text,
  context_tokens integer,
  slots integer,
  kv_type text,
  ask jsonb,
  contract jsonb,
  arguments text[],
  port integer,
  pid bigint,
  cores integer[],
  -- [{deviceId, bytes}]: what the plan said, and what was measured when it was ready.
  predicted_memory jsonb,
  measured_memory jsonb,
  host_anonymous_bytes bigint,
  host_resident_bytes bigint,
  computes_on text[],
  decided_at timestamptz,
  load_started_at timestamptz,
  load_started_event_id uuid,
  staged_at timestamptz,
  loaded_at timestamptz,
  ready_at timestamptz,
  adopted_at timestamptz,
  ended_at timestamptz,
  -- evicted, crashed, load-failed, found-gone, closed
  end_reason text,
  end_detail jsonb,
  position numeric(20) not null
);
create index residents_by_position on residents (position desc);
create index residents_by_model on residents (model_key, position desc);
create index residents_live on residents (worker_id, position desc) where phase <> 'ended';

create table decisions (
  decision_id text primary key,
  event_id uuid not null,
  worker_id text not null,
  admitted boolean not null,
  cause text not null,
  call_id text,
  model_key text not null,
  artifact text,
  rung text,
  resident_id text,
  context_tokens integer,
  slots integer,
  kv_type text,
  need_bytes bigint,
  -- Residents that it evicts.
  victims text[] not null,
  -- open, ready, failed, closed; refused from the start.
  state text not null,
  code text,
  reason text,
  refusals integer,
  predicted_ready_seconds double precision,
  predicted_load_seconds double precision,
  predicted_output_seconds double precision,
  -- Beside the predictions: decision to the start of the load (the room is free), and start of the load to serving.
  actual_ready_seconds double precision,
  actual_load_seconds double precision,
  failure_class text,
  decided_at timestamptz not null,
  valid_until timestamptz,
  ended_at timestamptz,
  -- The event that ended it.
  ended_event_id uuid,
  position numeric(20) not null
);
create index decisions_by_position on decisions (position desc);
create index decisions_by_model on decisions (model_key, position desc);
create index decisions_by_call on decisions (call_id) where call_id is not null;
create index decisions_by_resident on decisions (resident_id) where resident_id is not null;
create index decisions_by_state on decisions (state, position desc);

-- The whole event of a decision or refusal; apart, so that lists and later changes never touch it.
create table decision_workings (
  decision_id text primary key,
  event_id uuid not null,
  stream text not null,
  revision bigint not null,
  type text not null,
  at timestamptz not null,
  by_whom text not null,
  data jsonb not null
);

create table evictions (
  -- Id of the event that began it (or ended it, where the beginning is missing).
  eviction_id text primary key,
  resident_id text not null,
  worker_id text not null,
  decision_id text,
  model_key text,
  reason text not null,
  -- running, done, failed, overtaken (the resident ended otherwise)
  state text not null,
  -- [{deviceId, bytes}]
  freed jsonb,
  freed_bytes bigint,
  seconds double precision,
  failure text,
  message text,
  started_at timestamptz,
  ended_at timestamptz,
  position numeric(20) not null
);
create index evictions_by_position on evictions (position desc);
create index evictions_by_resident on evictions (resident_id);
create index evictions_by_decision on evictions (decision_id) where decision_id is not null;

create table calls (
  call_id text primary key,
  api_id text,
  model_key text not null,
  worker_id text,
  endpoint text,
  key_id text,
  group_digest text,
  intent text,
  background boolean,
  stream boolean,
  prompt_bytes bigint,
  max_tokens integer,
  ask_digest text,
  -- Null while it runs: completed, failed, abandoned, refused.
  outcome text,
  status integer,
  code text,
  resident_id text,
  decision_id text,
  artifact text,
  attempts integer,
  received_at timestamptz not null,
  queued_at timestamptz,
  decided_at timestamptz,
  ready_at timestamptz,
  forwarded_at timestamptz,
  first_byte_at timestamptz,
  finished_at timestamptz,
  queue jsonb,
  prompt_tokens integer,
  cached_tokens integer,
  output_tokens integer,
  reasoning_tokens integer,
  prompt_ms double precision,
  decode_ms double precision,
  cpu_ms double precision,
  bytes_out bigint,
  request_digest text,
  response_digest text,
  started_event_id uuid,
  finished_event_id uuid,
  position numeric(20) not null
);
create index calls_by_position on calls (position desc);
create index calls_by_model on calls (model_key, position desc);
create index calls_by_resident on calls (resident_id, received_at desc) where resident_id is not null;
create index calls_running on calls (position desc) where outcome is null;
create index calls_troubled on calls (outcome, position desc) where outcome <> 'completed';
create index calls_by_key on calls (key_id, position desc) where key_id is not null;

create table load_history (
  event_id uuid primary key,
  worker_id text not null,
  model_key text not null,
  -- projected, measured, refused, probed
  kind text not null,
  artifact text not null,
  class_key text not null,
  class jsonb not null,
  context_tokens integer not null,
  slots integer not null,
  kv_type text not null,
  engine_build text not null,
  resident_id text,
  call_id text,
  -- [{deviceId, weightsBytes, kvBytes, computeBytes, processBytes}]
  by_device jsonb,
  measured_bytes bigint,
  -- [{deviceId, bytes}]: what the decision had said.
  predicted_by_device jsonb,
  predicted_bytes bigint,
  host_anonymous_bytes bigint,
  host_resident_bytes bigint,
  seconds double precision,
  source text,
  ok boolean,
  failure text,
  message text,
  room jsonb,
  limits jsonb,
  at timestamptz not null,
  position numeric(20) not null
);
create index load_history_by_pair on load_history (worker_id, model_key, position desc);
create index load_history_by_resident on load_history (resident_id) where resident_id is not null;

create table serving_history (
  event_id uuid primary key,
  worker_id text not null,
  model_key text not null,
  call_id text not null,
  artifact text not null,
  class_key text not null,
  tokens_held integer not null,
  kv_bytes bigint,
  peak_by_device jsonb,
  prompt_ms_per_token double precision,
  decode_ms_per_token double precision,
  at timestamptz not null,
  position numeric(20) not null
);
create index serving_history_by_pair on serving_history (worker_id, model_key, position desc);
create index serving_history_by_call on serving_history (call_id);

create table apis (
  api_id text primary key,
  host text,
  boot_id text,
  pid bigint,
  agent_line text,
  version text,
  started_at timestamptz,
  ended_at timestamptz,
  -- stopped, lost
  end_reason text,
  lost_reason text,
  found_by text,
  position numeric(20) not null
);
create index apis_by_position on apis (position desc);
