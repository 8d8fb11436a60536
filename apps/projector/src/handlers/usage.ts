import { USAGE_COUNTS, type UsageCount } from '#schema/usage-counts.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { utcDay, utcHour } from './utc.js';

type Usage = Pick<Row<'usage_hours'>, UsageCount>;
type Call = Row<'calls'>;

/** Names the rows that a call counts in: of the hour and the day in which it was received, its model and its key. */
export function wantUsage(views: Views, receivedAt: string, modelKey: string, keyId: string): void {
  views.usage_hours.want(utcHour(receivedAt), modelKey, keyId);
  views.usage_days.want(utcDay(receivedAt), modelKey, keyId);
}

/** What a finished call adds. Whole numbers, so that taking them away again leaves nothing. */
function countsOf(call: Call): Usage {
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
  const of = { model_key: call.model_key, key_id: call.key_id ?? '' };
  const counts = countsOf(call);
  const [hour, day] = [utcHour(call.received_at), utcDay(call.received_at)];
  const inHour = views.usage_hours.get(hour, of.model_key, of.key_id);
  views.usage_hours.put({ hour, ...of, ...added(inHour, counts, sign) });
  const inDay = views.usage_days.get(day, of.model_key, of.key_id);
  views.usage_days.put({ day, ...of, ...added(inDay, counts, sign) });
}

function added(row: Usage | undefined, counts: Usage, sign: 1 | -1): Usage {
  const sum = { ...counts };
  for (const name of USAGE_COUNTS) sum[name] = (row?.[name] ?? 0) + sign * counts[name];
  return sum;
}
