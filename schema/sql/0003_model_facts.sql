-- What is known of a model beside its artifacts. Rows from before have none until their model is found again, or the
-- views are rebuilt from the log.
alter table models
  -- In the order of the catalogue's list: vision, audio, tools, …
  add column abilities text[] not null default '{}',
  add column trained_context_tokens bigint,
  -- [{role, label, files, parameters?, at?, broken?}]: projectors and adapters.
  add column attachments jsonb not null default '[]';
alter table models alter column abilities drop default, alter column attachments drop default;
