// Generated from schema/sql by schema/generate-types.ts; do not edit.
import { type Generated } from 'kysely';

/** jsonb: whatever the projection wrote there; readers name its shape. */
export type Json = unknown;

export interface ApiKeysTable {
  key_id: string;
  name: string | null;
  scope: string | null;
  sha256: string | null;
  expires_at: string | null;
  issued_at: string | null;
  revoked_at: string | null;
  revoked_by: string | null;
  position: string;
}

export interface ApisTable {
  api_id: string;
  host: string | null;
  boot_id: string | null;
  pid: number | null;
  agent_line: string | null;
  version: string | null;
  started_at: string | null;
  ended_at: string | null;
  end_reason: string | null;
  lost_reason: string | null;
  found_by: string | null;
  position: string;
}

export interface CallsTable {
  call_id: string;
  api_id: string | null;
  model_key: string;
  worker_id: string | null;
  endpoint: string | null;
  key_id: string | null;
  group_digest: string | null;
  intent: string | null;
  background: boolean | null;
  stream: boolean | null;
  prompt_bytes: number | null;
  max_tokens: number | null;
  ask_digest: string | null;
  outcome: string | null;
  status: number | null;
  code: string | null;
  resident_id: string | null;
  decision_id: string | null;
  artifact: string | null;
  attempts: number | null;
  received_at: string;
  queued_at: string | null;
  decided_at: string | null;
  ready_at: string | null;
  forwarded_at: string | null;
  first_byte_at: string | null;
  finished_at: string | null;
  queue: Json;
  prompt_tokens: number | null;
  cached_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  prompt_ms: number | null;
  decode_ms: number | null;
  cpu_ms: number | null;
  bytes_out: number | null;
  request_digest: string | null;
  response_digest: string | null;
  started_event_id: string | null;
  finished_event_id: string | null;
  position: string;
}

export interface CheckpointsTable {
  name: string;
  log_id: string;
  commit_position: string | null;
  prepare_position: string | null;
  updated_at: string;
}

export interface DaysTable {
  day: string;
  loads: number;
  load_ms: number;
  failed_loads: number;
  evictions: number;
  decisions: number;
  refusals: number;
}

export interface DecisionWorkingsTable {
  decision_id: string;
  event_id: string;
  stream: string;
  revision: number;
  type: string;
  at: string;
  by_whom: string;
  data: Json;
}

export interface DecisionsTable {
  decision_id: string;
  event_id: string;
  worker_id: string;
  admitted: boolean;
  cause: string;
  call_id: string | null;
  model_key: string;
  artifact: string | null;
  rung: string | null;
  resident_id: string | null;
  context_tokens: number | null;
  slots: number | null;
  kv_type: string | null;
  need_bytes: number | null;
  victims: string[];
  state: string;
  code: string | null;
  reason: string | null;
  refusals: number | null;
  predicted_ready_seconds: number | null;
  predicted_load_seconds: number | null;
  predicted_output_seconds: number | null;
  actual_ready_seconds: number | null;
  actual_load_seconds: number | null;
  failure_class: string | null;
  decided_at: string;
  valid_until: string | null;
  ended_at: string | null;
  ended_event_id: string | null;
  position: string;
}

export interface DevicesTable {
  worker_id: string;
  device_id: string;
  ordinal: number;
  kind: string | null;
  name: string | null;
  uuid: string | null;
  total_bytes: number | null;
  driver_reserved_bytes: number | null;
  compute_capability: string | null;
  foreign_bytes: number | null;
  foreign_processes: Json;
  present: boolean;
  changed_at: string;
}

export interface EvictionsTable {
  eviction_id: string;
  resident_id: string;
  worker_id: string;
  decision_id: string | null;
  model_key: string | null;
  reason: string;
  state: string;
  freed: Json;
  freed_bytes: number | null;
  seconds: number | null;
  failure: string | null;
  message: string | null;
  started_at: string | null;
  ended_at: string | null;
  position: string;
}

export interface LoadHistoryTable {
  event_id: string;
  worker_id: string;
  model_key: string;
  kind: string;
  artifact: string;
  class_key: string;
  class: Json;
  context_tokens: number;
  slots: number;
  kv_type: string;
  engine_build: string;
  resident_id: string | null;
  call_id: string | null;
  by_device: Json;
  measured_bytes: number | null;
  predicted_by_device: Json;
  predicted_bytes: number | null;
  host_anonymous_bytes: number | null;
  host_resident_bytes: number | null;
  seconds: number | null;
  source: string | null;
  ok: boolean | null;
  failure: string | null;
  message: string | null;
  room: Json;
  limits: Json;
  at: string;
  position: string;
}

export interface LoadTimeAccuracyTable {
  worker_id: string | null;
  model_key: string | null;
  artifact: string | null;
  engine_kind: string | null;
  engine_build: string | null;
  loads: number | null;
  mean_error_seconds: number | null;
  worst_error_seconds: number | null;
  mean_seconds: number | null;
  last_at: string | null;
}

export interface MigrationsTable {
  name: string;
  checksum: string;
  applied_at: Generated<string>;
}

export interface ModelsTable {
  worker_id: string;
  model_key: string;
  aliases: string[];
  root: string;
  path: string;
  kind: string;
  framework: string;
  smoke: boolean;
  marker: Json;
  artifacts: Json;
  hashes: Json;
  found_at: string;
  changed_at: string;
  gone_at: string | null;
  position: string;
  abilities: string[];
  trained_context_tokens: number | null;
  attachments: Json;
}

export interface OperatorActionsTable {
  action_id: string;
  worker_id: string;
  action: string | null;
  target: string | null;
  by_whom: string | null;
  state: string;
  result: string | null;
  requested_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  position: string;
}

export interface PullsTable {
  pull_id: string;
  worker_id: string;
  source: string | null;
  by_whom: string | null;
  state: string;
  reason: string | null;
  files: Json;
  pulled_bytes: number;
  requested_at: string | null;
  ended_at: string | null;
  position: string;
}

export interface RecentEventsTable {
  stream: string;
  event_ids: string[];
}

export interface ResidentsTable {
  resident_id: string;
  worker_id: string;
  decision_id: string | null;
  model_key: string | null;
  artifact: string | null;
  rung: string | null;
  kind: string | null;
  phase: string;
  leaving_reason: string | null;
  leaving_decision_id: string | null;
  leaving_started: boolean;
  eviction_id: string | null;
  engine_kind: string | null;
  engine_version: string | null;
  engine_build: string | null;
  context_tokens: number | null;
  slots: number | null;
  kv_type: string | null;
  ask: Json;
  contract: Json;
  arguments: string[] | null;
  port: number | null;
  pid: number | null;
  cores: number[] | null;
  predicted_memory: Json;
  measured_memory: Json;
  host_anonymous_bytes: number | null;
  host_resident_bytes: number | null;
  computes_on: string[] | null;
  decided_at: string | null;
  load_started_at: string | null;
  load_started_event_id: string | null;
  staged_at: string | null;
  loaded_at: string | null;
  ready_at: string | null;
  adopted_at: string | null;
  ended_at: string | null;
  end_reason: string | null;
  end_detail: Json;
  position: string;
}

export interface ServingHistoryTable {
  event_id: string;
  worker_id: string;
  model_key: string;
  call_id: string;
  artifact: string;
  class_key: string;
  tokens_held: number;
  kv_bytes: number | null;
  peak_by_device: Json;
  prompt_ms_per_token: number | null;
  decode_ms_per_token: number | null;
  at: string;
  position: string;
}

export interface SetAsideEventsTable {
  event_id: string;
  position: string;
  stream: string;
  revision: number;
  type: string;
  error: string;
  at: string;
}

export interface SettingsTable {
  scope: string;
  name: string;
  level: string;
  value: Json;
  is_set: boolean;
  by_whom: string;
  event_id: string;
  changed_at: string;
  position: string;
}

export interface SizeAccuracyTable {
  model_key: string;
  worker_id: string;
  class_key: string;
  artifact: string;
  engine_build: string;
  loads: number;
  error_millionths: number;
  worst_millionths: number;
  most_above_bytes: number;
  most_below_bytes: number;
  last_at: string;
}

export interface StorageDrivesTable {
  worker_id: string | null;
  mount: string | null;
  total_bytes: number | null;
  free_bytes: number | null;
  changed_at: string | null;
}

export interface StoredArtifactsTable {
  worker_id: string | null;
  model_key: string | null;
  root: string | null;
  path: string | null;
  artifact: string | null;
  complete: boolean | null;
  broken: string | null;
  bytes: number | null;
  position: string | null;
}

export interface UsageDaysTable {
  day: string;
  model_key: string;
  key_id: string;
  calls: number;
  completed: number;
  failed: number;
  abandoned: number;
  refused: number;
  prompt_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  prompt_ms: number;
  decode_ms: number;
  waited_ms: number;
  bytes_out: number;
}

export interface UsageHoursTable {
  hour: string;
  model_key: string;
  key_id: string;
  calls: number;
  completed: number;
  failed: number;
  abandoned: number;
  refused: number;
  prompt_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  prompt_ms: number;
  decode_ms: number;
  waited_ms: number;
  bytes_out: number;
}

export interface WhatIfNightsTable {
  day: string;
  from_at: string;
  to_at: string;
  calls: number;
  left_out: number;
  decisions: number;
  identical: number;
  really: Json;
  as_it_was: Json;
  changes: Json;
  least: Json;
  sentence: string;
  api_id: string;
  position: string;
}

export interface WorkersTable {
  worker_id: string;
  name: string | null;
  host: string | null;
  data_address: string | null;
  agent_version: string | null;
  os: string | null;
  boot_id: string | null;
  engines: Json;
  ram_bytes: number | null;
  swap_bytes: number | null;
  physical_cores: number | null;
  memory_bandwidth: Json;
  drives: Json;
  limits: Json;
  pins: string[];
  device_ids: string[];
  lost: boolean;
  last_seen_at: string | null;
  registered_at: string | null;
  changed_at: string;
  position: string;
}

export interface DB {
  api_keys: ApiKeysTable;
  apis: ApisTable;
  calls: CallsTable;
  checkpoints: CheckpointsTable;
  days: DaysTable;
  decision_workings: DecisionWorkingsTable;
  decisions: DecisionsTable;
  devices: DevicesTable;
  evictions: EvictionsTable;
  load_history: LoadHistoryTable;
  load_time_accuracy: LoadTimeAccuracyTable;
  migrations: MigrationsTable;
  models: ModelsTable;
  operator_actions: OperatorActionsTable;
  pulls: PullsTable;
  recent_events: RecentEventsTable;
  residents: ResidentsTable;
  serving_history: ServingHistoryTable;
  set_aside_events: SetAsideEventsTable;
  settings: SettingsTable;
  size_accuracy: SizeAccuracyTable;
  storage_drives: StorageDrivesTable;
  stored_artifacts: StoredArtifactsTable;
  usage_days: UsageDaysTable;
  usage_hours: UsageHoursTable;
  what_if_nights: WhatIfNightsTable;
  workers: WorkersTable;
}

/** Every column and the primary key of each table, in order. */
export const TABLES = {
  api_keys: {
    key: ['key_id'],
    columns: [
      'key_id',
      'name',
      'scope',
      'sha256',
      'expires_at',
      'issued_at',
      'revoked_at',
      'revoked_by',
      'position',
    ],
  },
  apis: {
    key: ['api_id'],
    columns: [
      'api_id',
      'host',
      'boot_id',
      'pid',
      'agent_line',
      'version',
      'started_at',
      'ended_at',
      'end_reason',
      'lost_reason',
      'found_by',
      'position',
    ],
  },
  calls: {
    key: ['call_id'],
    columns: [
      'call_id',
      'api_id',
      'model_key',
      'worker_id',
      'endpoint',
      'key_id',
      'group_digest',
      'intent',
      'background',
      'stream',
      'prompt_bytes',
      'max_tokens',
      'ask_digest',
      'outcome',
      'status',
      'code',
      'resident_id',
      'decision_id',
      'artifact',
      'attempts',
      'received_at',
      'queued_at',
      'decided_at',
      'ready_at',
      'forwarded_at',
      'first_byte_at',
      'finished_at',
      'queue',
      'prompt_tokens',
      'cached_tokens',
      'output_tokens',
      'reasoning_tokens',
      'prompt_ms',
      'decode_ms',
      'cpu_ms',
      'bytes_out',
      'request_digest',
      'response_digest',
      'started_event_id',
      'finished_event_id',
      'position',
    ],
  },
  checkpoints: {
    key: ['name'],
    columns: ['name', 'log_id', 'commit_position', 'prepare_position', 'updated_at'],
  },
  days: {
    key: ['day'],
    columns: ['day', 'loads', 'load_ms', 'failed_loads', 'evictions', 'decisions', 'refusals'],
  },
  decision_workings: {
    key: ['decision_id'],
    columns: ['decision_id', 'event_id', 'stream', 'revision', 'type', 'at', 'by_whom', 'data'],
  },
  decisions: {
    key: ['decision_id'],
    columns: [
      'decision_id',
      'event_id',
      'worker_id',
      'admitted',
      'cause',
      'call_id',
      'model_key',
      'artifact',
      'rung',
      'resident_id',
      'context_tokens',
      'slots',
      'kv_type',
      'need_bytes',
      'victims',
      'state',
      'code',
      'reason',
      'refusals',
      'predicted_ready_seconds',
      'predicted_load_seconds',
      'predicted_output_seconds',
      'actual_ready_seconds',
      'actual_load_seconds',
      'failure_class',
      'decided_at',
      'valid_until',
      'ended_at',
      'ended_event_id',
      'position',
    ],
  },
  devices: {
    key: ['worker_id', 'device_id'],
    columns: [
      'worker_id',
      'device_id',
      'ordinal',
      'kind',
      'name',
      'uuid',
      'total_bytes',
      'driver_reserved_bytes',
      'compute_capability',
      'foreign_bytes',
      'foreign_processes',
      'present',
      'changed_at',
    ],
  },
  evictions: {
    key: ['eviction_id'],
    columns: [
      'eviction_id',
      'resident_id',
      'worker_id',
      'decision_id',
      'model_key',
      'reason',
      'state',
      'freed',
      'freed_bytes',
      'seconds',
      'failure',
      'message',
      'started_at',
      'ended_at',
      'position',
    ],
  },
  load_history: {
    key: ['event_id'],
    columns: [
      'event_id',
      'worker_id',
      'model_key',
      'kind',
      'artifact',
      'class_key',
      'class',
      'context_tokens',
      'slots',
      'kv_type',
      'engine_build',
      'resident_id',
      'call_id',
      'by_device',
      'measured_bytes',
      'predicted_by_device',
      'predicted_bytes',
      'host_anonymous_bytes',
      'host_resident_bytes',
      'seconds',
      'source',
      'ok',
      'failure',
      'message',
      'room',
      'limits',
      'at',
      'position',
    ],
  },
  migrations: {
    key: ['name'],
    columns: ['name', 'checksum', 'applied_at'],
  },
  models: {
    key: ['worker_id', 'model_key'],
    columns: [
      'worker_id',
      'model_key',
      'aliases',
      'root',
      'path',
      'kind',
      'framework',
      'smoke',
      'marker',
      'artifacts',
      'hashes',
      'found_at',
      'changed_at',
      'gone_at',
      'position',
      'abilities',
      'trained_context_tokens',
      'attachments',
    ],
  },
  operator_actions: {
    key: ['action_id'],
    columns: [
      'action_id',
      'worker_id',
      'action',
      'target',
      'by_whom',
      'state',
      'result',
      'requested_at',
      'started_at',
      'ended_at',
      'position',
    ],
  },
  pulls: {
    key: ['pull_id'],
    columns: [
      'pull_id',
      'worker_id',
      'source',
      'by_whom',
      'state',
      'reason',
      'files',
      'pulled_bytes',
      'requested_at',
      'ended_at',
      'position',
    ],
  },
  recent_events: {
    key: ['stream'],
    columns: ['stream', 'event_ids'],
  },
  residents: {
    key: ['resident_id'],
    columns: [
      'resident_id',
      'worker_id',
      'decision_id',
      'model_key',
      'artifact',
      'rung',
      'kind',
      'phase',
      'leaving_reason',
      'leaving_decision_id',
      'leaving_started',
      'eviction_id',
      'engine_kind',
      'engine_version',
      'engine_build',
      'context_tokens',
      'slots',
      'kv_type',
      'ask',
      'contract',
      'arguments',
      'port',
      'pid',
      'cores',
      'predicted_memory',
      'measured_memory',
      'host_anonymous_bytes',
      'host_resident_bytes',
      'computes_on',
      'decided_at',
      'load_started_at',
      'load_started_event_id',
      'staged_at',
      'loaded_at',
      'ready_at',
      'adopted_at',
      'ended_at',
      'end_reason',
      'end_detail',
      'position',
    ],
  },
  serving_history: {
    key: ['event_id'],
    columns: [
      'event_id',
      'worker_id',
      'model_key',
      'call_id',
      'artifact',
      'class_key',
      'tokens_held',
      'kv_bytes',
      'peak_by_device',
      'prompt_ms_per_token',
      'decode_ms_per_token',
      'at',
      'position',
    ],
  },
  set_aside_events: {
    key: ['event_id'],
    columns: ['event_id', 'position', 'stream', 'revision', 'type', 'error', 'at'],
  },
  settings: {
    key: ['scope', 'name'],
    columns: ['scope', 'name', 'level', 'value', 'is_set', 'by_whom', 'event_id', 'changed_at', 'position'],
  },
  size_accuracy: {
    key: ['model_key', 'worker_id', 'class_key'],
    columns: [
      'model_key',
      'worker_id',
      'class_key',
      'artifact',
      'engine_build',
      'loads',
      'error_millionths',
      'worst_millionths',
      'most_above_bytes',
      'most_below_bytes',
      'last_at',
    ],
  },
  usage_days: {
    key: ['day', 'model_key', 'key_id'],
    columns: [
      'day',
      'model_key',
      'key_id',
      'calls',
      'completed',
      'failed',
      'abandoned',
      'refused',
      'prompt_tokens',
      'cached_tokens',
      'output_tokens',
      'reasoning_tokens',
      'prompt_ms',
      'decode_ms',
      'waited_ms',
      'bytes_out',
    ],
  },
  usage_hours: {
    key: ['hour', 'model_key', 'key_id'],
    columns: [
      'hour',
      'model_key',
      'key_id',
      'calls',
      'completed',
      'failed',
      'abandoned',
      'refused',
      'prompt_tokens',
      'cached_tokens',
      'output_tokens',
      'reasoning_tokens',
      'prompt_ms',
      'decode_ms',
      'waited_ms',
      'bytes_out',
    ],
  },
  what_if_nights: {
    key: ['day'],
    columns: [
      'day',
      'from_at',
      'to_at',
      'calls',
      'left_out',
      'decisions',
      'identical',
      'really',
      'as_it_was',
      'changes',
      'least',
      'sentence',
      'api_id',
      'position',
    ],
  },
  workers: {
    key: ['worker_id'],
    columns: [
      'worker_id',
      'name',
      'host',
      'data_address',
      'agent_version',
      'os',
      'boot_id',
      'engines',
      'ram_bytes',
      'swap_bytes',
      'physical_cores',
      'memory_bandwidth',
      'drives',
      'limits',
      'pins',
      'device_ids',
      'lost',
      'last_seen_at',
      'registered_at',
      'changed_at',
      'position',
    ],
  },
} as const;
