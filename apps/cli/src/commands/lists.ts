import type { CallItem, DecisionItem, QueueItem, ResidentItem } from '#domain/wire/index.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import { parseArgs } from '../args.js';
import { listTable } from '../list-table.js';
import { UsageError } from '../usage-error.js';
import { type Command, exit, flagOn, flagText } from './command.js';
import { clientOf, READER_FLAGS, READER_FLAGS_HELP } from './readers.js';

const DEFAULT_ROWS = 20;
const MOST_ROWS = 10_000;

interface ListOf<Row> {
  readonly name: string;
  readonly summary: string;
  readonly path: string;
  /** Flags that narrow the list, under the names of the query's parameters. */
  readonly filters: Readonly<Record<string, string>>;
  readonly head: readonly string[];
  readonly cells: (row: Row) => readonly string[];
  /** The column that is cut when a line would be too long. */
  readonly flexible: number;
  /** Columns of ids, which a narrower terminal cuts at their end. */
  readonly ids?: readonly number[];
  readonly none: string;
}

const seconds = (value: number | undefined): string => (value === undefined ? '' : formatSeconds(value));

/** The time of day; the day too when it is another one. */
function when(iso: string | undefined): string {
  if (iso === undefined) return '';
  const at = new Date(iso);
  const isToday = at.toDateString() === new Date().toDateString();
  const two = (n: number) => String(n).padStart(2, '0');
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return isToday ? time : `${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

/** A list of a running Berth: a table for people, everything with --json. */
const list = <Row>(of: ListOf<Row>): Command => ({
  name: of.name,
  usage: `${of.name} [--limit N]${Object.keys(of.filters)
    .map((name) => ` [--${name} X]`)
    .join('')}`,
  summary: of.summary,
  details: [
    `--limit N                how many; ${DEFAULT_ROWS} when left out`,
    ...Object.entries(of.filters).map(([name, what]) => `${`--${name} X`.padEnd(25)}${what}`),
    READER_FLAGS_HELP,
  ].join('\n'),
  group: 'look',
  run: async (argv) => {
    const filters = Object.fromEntries(Object.keys(of.filters).map((name) => [name, 'value' as const]));
    const args = parseArgs(argv, { ...READER_FLAGS, limit: 'value', ...filters }, of.name);
    if (args.words.length > 0) throw new UsageError(`\`berth ${of.name}\` takes no "${args.words[0] ?? ''}"`);
    const limit = Number(flagText(args, 'limit') ?? DEFAULT_ROWS);
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_ROWS)
      throw new UsageError(`--limit is a whole number from 1 to ${MOST_ROWS}`);
    const client = clientOf(args);
    const query = new URLSearchParams();
    for (const name of Object.keys(of.filters)) {
      const value = flagText(args, name);
      if (value !== undefined) query.set(name, value);
    }
    const rows = await client.list<Row>(`${of.path}${query.size > 0 ? `?${query.toString()}` : ''}`, limit);
    if (flagOn(args, 'json')) console.log(JSON.stringify(rows, null, 2));
    else
      console.log(
        rows.length === 0 ? of.none : listTable(of.head, rows.map(of.cells), of.flexible, undefined, of.ids),
      );
    return exit(0);
  },
});

export const LISTS: readonly Command[] = [
  list<ResidentItem>({
    name: 'residents',
    summary: 'what is loaded, with its state, context and memory',
    path: '/admin/residents',
    filters: {
      state: 'live (when left out), ended, all',
      model: "of this model's key",
      worker: 'on this worker, by its id',
    },
    head: ['resident', 'model', 'artifact', 'state', 'context', 'memory'],
    cells: (row) => [
      row.residentId,
      row.modelKey ?? '',
      row.artifact ?? '',
      row.leaving ? 'leaving' : row.phase,
      row.contextTokens === undefined ? '' : String(row.contextTokens),
      formatBytes(row.memory.reduce((sum, { bytes }) => sum + bytes, 0)),
    ],
    flexible: 1,
    ids: [0],
    none: 'Nothing is loaded. `berth operator load MODEL` loads a model; so does a call.',
  }),
  list<QueueItem>({
    name: 'queue',
    summary: 'calls that wait now, in their order, and why',
    path: '/admin/queue',
    filters: {},
    head: ['place', 'model', 'state', 'waited', 'expected', 'why'],
    cells: (row) => [
      String(row.place),
      row.modelKey,
      row.phase,
      seconds(row.waitedSeconds),
      seconds(row.freeInSeconds ?? row.predicted?.predictedReadySeconds),
      row.why,
    ],
    flexible: 5,
    none: 'No call waits.',
  }),
  list<CallItem>({
    name: 'calls',
    summary: 'the last calls, what became of them and how long they took',
    path: '/admin/calls',
    filters: {
      model: "of this model's key",
      outcome: 'completed, failed, abandoned, refused, running',
      resident: 'on this resident',
      since: 'received at or after this ISO time',
    },
    head: ['received', 'model', 'state', 'waited', 'took', 'tokens/s', 'call'],
    cells: (row) => [
      when(row.receivedAt),
      row.modelKey,
      row.state,
      seconds(row.timings.waitedSeconds),
      seconds(row.timings.totalSeconds),
      row.timings.tokensPerSecond?.toFixed(1) ?? '',
      row.callId,
    ],
    flexible: 1,
    ids: [6],
    none: 'There is no such call yet. `berth help calls` lists what narrows the list.',
  }),
  list<DecisionItem>({
    name: 'decisions',
    summary: 'the last decisions and refusals, predicted beside actual load times',
    path: '/admin/decisions',
    filters: {
      model: "of this model's key",
      state: 'open, ready, failed, closed, refused',
    },
    head: ['decided', 'model', 'state', 'rung', 'load', 'took', 'decision'],
    cells: (row) => [
      when(row.decidedAt),
      row.modelKey,
      row.state,
      row.rung ?? row.code ?? '',
      seconds(row.predicted.loadSeconds),
      seconds(row.actual.loadSeconds),
      row.decisionId,
    ],
    flexible: 1,
    ids: [6],
    none: 'No placement was decided yet: nothing was called.',
  }),
];
