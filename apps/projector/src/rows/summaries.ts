import { utcDay } from '../handlers/utc.js';
import type { Row, RowChange } from './row-set.js';
import type { Views } from './views.js';

type Day = Row<'days'>;
type Counts = Omit<Day, 'day'>;
type Accuracy = Row<'size_accuracy'>;

interface Counted {
  readonly day: string;
  readonly counts: Partial<Counts>;
  readonly sign: 1 | -1;
}

/** What rows of a batch add to rows that sum many of them. Asked when the batch was applied; the sums are loaded then. */
export interface Summaries {
  readonly days: readonly Counted[];
  readonly accuracy: readonly Accuracy[];
}

/** Names the sums that have to be there, and says what comes to them. */
export function summariesOf(views: Views): Summaries {
  const days = [
    ...counted(views.residents.changes(), ofResident),
    ...counted(views.decisions.changes(), ofDecision),
    ...counted(views.evictions.changes(), ofEviction),
  ];
  // A measurement is written once and never changed.
  const accuracy = views.load_history
    .changes()
    .flatMap(({ before, after }) => (before === undefined ? accuracyOf(after) : []));
  for (const { day } of days) views.days.want(day);
  for (const row of accuracy) views.size_accuracy.want(row.model_key, row.worker_id, row.class_key);
  return { days, accuracy };
}

export function addSummaries(views: Views, { days, accuracy }: Summaries): void {
  for (const { day, counts, sign } of days) {
    const next = { ...(views.days.get(day) ?? emptyDay(day)) };
    for (const [name, count] of Object.entries(counts) as [keyof Counts, number][])
      next[name] += sign * count;
    views.days.put(next);
  }
  for (const one of accuracy) {
    const row = views.size_accuracy.get(one.model_key, one.worker_id, one.class_key);
    views.size_accuracy.put(row === undefined ? one : joined(row, one));
  }
}

/** What a row counted with before is taken away, what it is now is added; what stays the same is not touched. */
function counted<R>(
  changes: readonly RowChange<R>[],
  of: (row: R) => Omit<Counted, 'sign'> | undefined,
): readonly Counted[] {
  return changes.flatMap(({ before, after }): readonly Counted[] => {
    const [was, is] = [before && of(before), of(after)];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    return [...(was ? [{ ...was, sign: -1 as const }] : []), ...(is ? [{ ...is, sign: 1 as const }] : [])];
  });
}

const ofResident = ({ ready_at: at, load_started_at: startedAt }: Row<'residents'>) =>
  at === null
    ? undefined
    : {
        day: utcDay(at),
        counts: { loads: 1, load_ms: startedAt === null ? 0 : Date.parse(at) - Date.parse(startedAt) },
      };

const ofDecision = ({ decided_at: at, admitted, state, refusals }: Row<'decisions'>) => ({
  day: utcDay(at),
  counts: {
    decisions: admitted ? 1 : 0,
    refusals: admitted ? 0 : (refusals ?? 1),
    failed_loads: state === 'failed' ? 1 : 0,
  },
});

const ofEviction = ({ state, ended_at: at }: Row<'evictions'>) =>
  state === 'done' && at !== null ? { day: utcDay(at), counts: { evictions: 1 } } : undefined;

const emptyDay = (day: string): Day => ({
  day,
  loads: 0,
  load_ms: 0,
  failed_loads: 0,
  evictions: 0,
  decisions: 0,
  refusals: 0,
});

function accuracyOf(load: Row<'load_history'>): Accuracy[] {
  const { measured_bytes: measured, predicted_bytes: predicted } = load;
  if (load.kind !== 'measured' || !measured || !predicted) return [];
  const millionths = Math.floor((Math.abs(measured - predicted) / measured) * 1_000_000);
  return [
    {
      model_key: load.model_key,
      worker_id: load.worker_id,
      class_key: load.class_key,
      artifact: load.artifact,
      engine_build: load.engine_build,
      loads: 1,
      error_millionths: millionths,
      worst_millionths: millionths,
      most_above_bytes: measured - predicted,
      most_below_bytes: predicted - measured,
      last_at: load.at,
    },
  ];
}

const joined = (row: Accuracy, one: Accuracy): Accuracy => ({
  ...row,
  loads: row.loads + one.loads,
  error_millionths: row.error_millionths + one.error_millionths,
  worst_millionths: Math.max(row.worst_millionths, one.worst_millionths),
  most_above_bytes: Math.max(row.most_above_bytes, one.most_above_bytes),
  most_below_bytes: Math.max(row.most_below_bytes, one.most_below_bytes),
  last_at: Date.parse(one.last_at) > Date.parse(row.last_at) ? one.last_at : row.last_at,
});
