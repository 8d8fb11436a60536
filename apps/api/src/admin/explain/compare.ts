import type { Comparison, Situation } from '#domain/wire/index.js';
import type { CallRow } from '../calls/calls.repository.js';
import type { DecisionRow } from '../decisions/decisions.repository.js';
import type { LoadRow } from '../history/history.repository.js';
import type { ResidentRow } from '../residents/residents.repository.js';
import type { DeviceFigures } from '../views/present.js';

const secondsBetween = (from: string | null, to: string | null): number | undefined =>
  from === null || to === null ? undefined : (Date.parse(to) - Date.parse(from)) / 1000;

const figure = (
  what: string,
  unit: Comparison['unit'],
  predicted: readonly [number | null | undefined, string | null | undefined],
  actual: readonly [number | null | undefined, string | null | undefined],
): Comparison[] => {
  if (predicted[0] == null && actual[0] == null) return [];
  return [
    {
      what,
      unit,
      ...(predicted[0] == null ? {} : { predicted: predicted[0], ...by('predictedBy', predicted[1]) }),
      ...(actual[0] == null ? {} : { actual: actual[0], ...by('actualBy', actual[1]) }),
    },
  ];
};

const by = <K extends string>(key: K, event: string | null | undefined) =>
  (event == null ? {} : { [key]: event }) as { readonly [P in K]?: string };

/**
 * What the decision predicted, beside what the load and the call took. A call that a resident served had no load: what
 * that resident's own took is not told as if it were this call's.
 */
export function compare(
  call: CallRow,
  decision: DecisionRow | undefined,
  resident: ResidentRow | undefined,
  load: LoadRow | undefined,
  situation: Situation,
): readonly Comparison[] {
  if (situation === 'reused') {
    return figure(
      'prompt and output',
      'seconds',
      [undefined, undefined],
      [secondsBetween(call.forwarded_at, call.finished_at), call.finished_event_id],
    );
  }
  const predictedBy = decision?.event_id;
  const own = decision?.call_id === call.call_id;
  return [
    ...figure(
      'room free',
      'seconds',
      [decision?.predicted_ready_seconds, predictedBy],
      [decision?.actual_ready_seconds, resident?.load_started_event_id],
    ),
    ...figure(
      'load',
      'seconds',
      [decision?.predicted_load_seconds, predictedBy],
      load ? [load.seconds, load.event_id] : [decision?.actual_load_seconds, decision?.ended_event_id],
    ),
    // The prediction is for the call that the decision was taken for; another call has another length.
    ...figure(
      'prompt and output',
      'seconds',
      own ? [decision.predicted_output_seconds, predictedBy] : [undefined, undefined],
      [secondsBetween(call.forwarded_at, call.finished_at), call.finished_event_id],
    ),
    ...memory(load),
  ];
}

function memory(load: LoadRow | undefined): Comparison[] {
  if (!load) return [];
  const predicted = (load.predicted_by_device ?? []) as DeviceFigures;
  const measured = ((load.by_device ?? []) as readonly Readonly<Record<string, number | string>>[]).map(
    (device) => ({
      deviceId: String(device['deviceId']),
      bytes: ['weightsBytes', 'kvBytes', 'computeBytes', 'processBytes'].reduce(
        (sum, term) => sum + Number(device[term] ?? 0),
        0,
      ),
    }),
  );
  const devices = [...new Set([...predicted, ...measured].map((each) => each.deviceId))];
  return devices.flatMap((deviceId) =>
    figure(
      `memory on ${deviceId === 'ram' ? 'RAM' : deviceId}`,
      'bytes',
      [predicted.find((each) => each.deviceId === deviceId)?.bytes, load.event_id],
      [measured.find((each) => each.deviceId === deviceId)?.bytes, load.event_id],
    ),
  );
}
