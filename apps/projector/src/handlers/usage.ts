import { USAGE_COUNTS, type UsageCount } from '#schema/usage-counts.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';

type Usage = Row<'usage_hours'>;
type Call = Row<'calls'>;

const HOUR_MS = 3_600_000;

const UTC_TIME = /^\d{4}-\d\d-\d\dT\d\d:/;

/** The hour in which a time lies, as the database gives it back. @throws RangeError when it is no time. */
export function usageHour(receivedAt: string): string {
  if (receivedAt.endsWith('Z') && UTC_TIME.test(receivedAt)) return `${receivedAt.slice(0, 13)}:00:00.000Z`;
  const atMs = Date.parse(receivedAt);
  if (Number.isNaN(atMs)) throw new RangeError(`"${receivedAt}" is not a time.`);
  return new Date(Math.floor(atMs / HOUR_MS) * HOUR_MS).toISOString();
}

/** The row that a call counts in: the hour in which it was received, its model and its key. */
export const usageKey = (call: Call): [hour: string, modelKey: string, keyId: string] => [
  usageHour(call.received_at),
  call.model_key,
  call.key_id ?? '',
];

/** What a finished call adds. Whole numbers, so that taking them away again leaves nothing. */
function countsOf(call: Call): Pick<Usage, UsageCount> {
  const waitedMs =
    call.forwarded_at === null ? 0 : Date.parse(call.forwarded_at) - Date.parse(call.received_at);
  return {
    calls: 1,
    completed: call.outcome === 'completed' ? 1 : 0,
    failed: call.outcome === 'failed' ? 1 : 0,
    abandoned: call.outcome === 'abandoned' ? 1 : 0,
    refused: call.outcome === 'refused' ? 1 : 0,
    prompt_tokens: call.prompt_tokens ?? 0,
    cached_tokens: call.cached_tokens ?? 0,
    output_tokens: call.output_tokens ?? 0,
    reasoning_tokens: call.reasoning_tokens ?? 0,
    prompt_ms: Math.round(call.prompt_ms ?? 0),
    decode_ms: Math.round(call.decode_ms ?? 0),
    waited_ms: Math.max(0, waitedMs),
    bytes_out: call.bytes_out ?? 0,
  };
}

const isFinished = (call: Call | undefined): call is Call =>
  call !== undefined && call.finished_event_id !== null;

/**
 * Puts a call and keeps the count of its hour: what it was counted with before is taken away, what it is now is added.
 * So a start that comes after the end moves the call to the key that it names, and nothing is counted twice.
 */
export function putCall(views: Views, call: Call): void {
  const before = views.calls.get(call.call_id);
  views.calls.put(call);
  if (isFinished(before)) count(views, before, -1);
  if (isFinished(call)) count(views, call, 1);
}

function count(views: Views, call: Call, sign: 1 | -1): void {
  const [hour, modelKey, keyId] = usageKey(call);
  const row = views.usage_hours.get(hour, modelKey, keyId) ?? emptyUsage(hour, modelKey, keyId);
  const counts = countsOf(call);
  const next = { ...row };
  for (const name of USAGE_COUNTS) next[name] = row[name] + sign * counts[name];
  views.usage_hours.put(next);
}

const emptyUsage = (hour: string, modelKey: string, keyId: string): Usage => ({
  hour,
  model_key: modelKey,
  key_id: keyId,
  calls: 0,
  completed: 0,
  failed: 0,
  abandoned: 0,
  refused: 0,
  prompt_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  prompt_ms: 0,
  decode_ms: 0,
  waited_ms: 0,
  bytes_out: 0,
});
