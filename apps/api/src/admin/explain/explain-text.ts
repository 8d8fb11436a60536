import { formatBytes, formatSeconds } from '#domain/units.js';
import type { Comparison, Situation } from '#domain/wire/index.js';
import { columns, count, wrap } from '#placement/text.js';
import type { CallRow } from '../calls/calls.repository.js';
import type { DecisionRow } from '../decisions/decisions.repository.js';
import type { ResidentRow } from '../residents/residents.repository.js';

export interface ExplainParts {
  readonly call: CallRow;
  readonly situation: Situation;
  readonly decision: DecisionRow | undefined;
  readonly resident: ResidentRow | undefined;
  readonly compared: readonly Comparison[];
  /** The working as the placement renders it; absent when the decision is not in the views. */
  readonly working: string | undefined;
}

/** A call as `berth explain` prints it: at most 100 columns. */
export function explainText(parts: ExplainParts): string {
  const { call, compared, working } = parts;
  return [
    ...heading(call),
    '',
    ...wrap(sentence(parts), '  ', ''),
    '',
    ...times(call),
    ...tokens(call),
    ...comparison(compared),
    ...(working === undefined ? [] : [workingTitle(parts), '', working.trimEnd()]),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n');
}

function heading(call: CallRow): readonly string[] {
  const end =
    call.outcome === null
      ? 'still running'
      : `${call.outcome}, status ${call.status ?? 'unknown'}${call.code === null ? '' : ` (${call.code})`}`;
  const where = call.endpoint === null ? '' : ` on ${call.endpoint}`;
  return wrap(`Call ${call.call_id} to ${call.model_key}${where}: ${end}.`, '  ', '');
}

function sentence(parts: ExplainParts): string {
  const { call, situation, decision, resident } = parts;
  const artifact = call.artifact ?? resident?.artifact ?? decision?.artifact ?? 'the model';
  const maker = decision
    ? `decision ${decision.decision_id}, taken ${decision.decided_at}${cause(decision)}`
    : '';
  switch (situation) {
    case 'running':
      return decision
        ? `It has no end yet. The last decision for it is ${decision.decision_id}, which is ${decision.state}.`
        : 'It has no end yet, and no decision was taken for it so far.';
    case 'placed':
      return `It had to be placed: ${artifact} was loaded for it, by the decision below.`;
    case 'joined':
      return `${artifact} was already on its way: it waited for resident ${resident?.resident_id ?? decision?.resident_id ?? 'unknown'}, which ${maker} made.`;
    case 'reused':
      return decision
        ? `No decision was needed and nothing was loaded: ${artifact} was resident as ${resident?.resident_id ?? 'unknown'}${since(parts)}, which ${maker} made.`
        : `No decision was needed: resident ${call.resident_id ?? 'unknown'} served it. The decision that made it is not in the views.`;
    case 'refused':
      return `It was refused: ${decision?.reason ?? call.code ?? 'no reason is recorded'}`;
    case 'undecided':
      return 'It ended before a decision was taken for it.';
  }
}

/** Since when the resident was ready, and how long before this call that was. */
function since({ call, resident }: ExplainParts): string {
  if (resident?.ready_at == null) return '';
  const seconds = (Date.parse(call.received_at) - Date.parse(resident.ready_at)) / 1000;
  return `, ready since ${resident.ready_at} (${formatSeconds(Math.max(0, seconds))} before this call)`;
}

const workingTitle = ({ situation, decision }: ExplainParts): string =>
  situation === 'reused' && decision
    ? `The decision that made the resident, taken ${decision.decided_at} and not for this call`
    : 'The decision';

function cause(decision: DecisionRow): string {
  return decision.call_id === null ? ` (${decision.cause})` : ` for call ${decision.call_id}`;
}

const STAGES = [
  ['queued', 'queued_at'],
  ['decided', 'decided_at'],
  ['model ready', 'ready_at'],
  ['sent to the engine', 'forwarded_at'],
  ['first byte', 'first_byte_at'],
  ['finished', 'finished_at'],
] as const satisfies readonly (readonly [string, keyof CallRow])[];

function times(call: CallRow): readonly string[] {
  const rows = STAGES.flatMap(([name, column]) => {
    const at = call[column];
    if (at === null) return [];
    const seconds = (Date.parse(at) - Date.parse(call.received_at)) / 1000;
    return [[`  ${name}`, `+${seconds.toFixed(3)} s`]];
  });
  return ['When', ...columns([['  received', call.received_at], ...rows], new Set()), ''];
}

function tokens(call: CallRow): readonly string[] {
  const parts = [
    call.prompt_tokens === null ? '' : `${count(call.prompt_tokens)} prompt tokens`,
    call.cached_tokens === null ? '' : `${count(call.cached_tokens)} of them from the cache`,
    call.output_tokens === null ? '' : `${count(call.output_tokens)} output tokens`,
    call.reasoning_tokens === null ? '' : `${count(call.reasoning_tokens)} of them reasoning`,
    call.attempts !== null && call.attempts > 1 ? `sent ${call.attempts} times` : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? [] : ['What', ...wrap(parts.join(', '), '    ', '  '), ''];
}

function comparison(compared: readonly Comparison[]): readonly string[] {
  if (compared.length === 0) return [];
  const value = (row: Comparison, amount: number | undefined) => {
    if (amount === undefined) return 'unknown';
    return row.unit === 'bytes' ? formatBytes(amount) : formatSeconds(amount);
  };
  const events = [...new Set(compared.flatMap((row) => [row.predictedBy, row.actualBy]))].filter(
    (event) => event !== undefined,
  );
  const mark = (event: string | undefined) => (event === undefined ? '' : `[${events.indexOf(event) + 1}]`);
  const rows = compared.map((row) => [
    `  ${row.what}`,
    value(row, row.predicted),
    mark(row.predicted === undefined ? undefined : row.predictedBy),
    value(row, row.actual),
    mark(row.actual === undefined ? undefined : row.actualBy),
  ]);
  return [
    'Predicted and measured',
    ...columns([['', 'predicted', '', 'measured', ''], ...rows], new Set([1, 3])),
    ...events.map((event, index) => `  [${index + 1}] event ${event}`),
    '',
  ];
}
