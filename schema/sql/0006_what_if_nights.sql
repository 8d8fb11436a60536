-- What the calls of each day would have met otherwise: one row a night, as it was summarised.
create table what_if_nights (
  -- The local date of the night that ended it.
  day text primary key,
  from_at timestamptz not null,
  to_at timestamptz not null,
  calls bigint not null,
  left_out bigint not null,
  decisions bigint not null,
  identical bigint not null,
  really jsonb not null,
  as_it_was jsonb not null,
  -- [{name, figures, loadsSaved}]
  changes jsonb not null,
  least jsonb not null,
  sentence text not null,
  api_id text not null,
  position numeric(20) not null
);
