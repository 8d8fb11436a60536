-- Lists of calls by time and by worker, and of operator actions that have not ended, stay fast over ten million calls.
create index calls_by_time on calls (received_at desc, position desc);
create index calls_by_worker on calls (worker_id, position desc) where worker_id is not null;
create index decisions_by_worker on decisions (worker_id, position desc);
create index evictions_by_model on evictions (model_key, position desc) where model_key is not null;
create index operator_actions_open on operator_actions (position desc) where ended_at is null;
