import { type DeviceBytes, type PlacementClass, classKey, sumOf } from '#domain/placement-terms.js';
import { parseHistoryStream } from '#events/streams.js';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, sumBytes } from './handler.js';

/** Rows are keyed by the event: written whole, never changed, so a second copy of an event changes nothing. */
const touches = (): void => undefined;

const deviceTotal = (devices: readonly DeviceBytes[]): number =>
  devices.reduce((sum, d) => sum + sumOf(d), 0);

function pairOf(recorded: Recorded<BerthEvent>): { worker_id: string; model_key: string } {
  const pair = parseHistoryStream(recorded.stream);
  if (!pair) throw new Error(`The stream ${recorded.stream} names no worker and model.`);
  return { worker_id: pair.workerId, model_key: pair.modelKey };
}

const newLoad = (recorded: Recorded<BerthEvent>, kind: string, of: PlacementClass): Row<'load_history'> => ({
  event_id: recorded.id,
  ...pairOf(recorded),
  kind,
  artifact: of.artifact,
  class_key: classKey(of),
  class: of,
  context_tokens: of.contextTokens,
  slots: of.slots,
  kv_type: of.kvType,
  engine_build: of.engineBuild,
  resident_id: null,
  call_id: null,
  by_device: null,
  measured_bytes: null,
  predicted_by_device: null,
  predicted_bytes: null,
  host_anonymous_bytes: null,
  host_resident_bytes: null,
  seconds: null,
  source: null,
  ok: null,
  failure: null,
  message: null,
  room: null,
  limits: null,
  at: recorded.metadata.at,
  position: positionOf(recorded),
});

const add = (views: Views, row: Row<'load_history'>): void => views.load_history.put(row);

const projected: Handler<'LoadProjected'> = {
  repeatable: true,
  touches,
  apply: (views, recorded) => {
    const { class: of, byDevice, source } = recorded.event.data;
    add(views, {
      ...newLoad(recorded, 'projected', of),
      predicted_by_device: byDevice.map((d) => ({ deviceId: d.deviceId, bytes: deviceTotal([d]) })),
      predicted_bytes: deviceTotal(byDevice),
      by_device: byDevice,
      source,
    });
  },
};

const measured: Handler<'LoadMeasured'> = {
  repeatable: true,
  // It is summed too, and a second copy must not be.
  touches: (views, recorded) => views.load_history.want(recorded.id),
  apply: (views, recorded) => {
    if (views.load_history.get(recorded.id)) return;
    const data = recorded.event.data;
    add(views, {
      ...newLoad(recorded, 'measured', data.class),
      resident_id: data.residentId,
      call_id: data.callId ?? null,
      by_device: data.byDevice,
      measured_bytes: deviceTotal(data.byDevice),
      predicted_by_device: data.predictedByDevice,
      predicted_bytes: sumBytes(data.predictedByDevice),
      host_anonymous_bytes: data.hostAnonymousBytes,
      host_resident_bytes: data.hostResidentBytes,
      seconds: data.seconds,
      ok: true,
    });
  },
};

const refusedByEngine: Handler<'LoadRefusedByEngine'> = {
  repeatable: true,
  touches,
  apply: (views, recorded) => {
    const { class: of, residentId, failure, message, seconds, roomBytes } = recorded.event.data;
    add(views, {
      ...newLoad(recorded, 'refused', of),
      resident_id: residentId,
      seconds,
      ok: false,
      failure,
      message,
      room: roomBytes,
    });
  },
};

const probed: Handler<'ContextProbed'> = {
  repeatable: true,
  touches,
  apply: (views, recorded) => {
    const { class: of, contextTokens, ok, byDevice, reason, roomBytes, limits } = recorded.event.data;
    add(views, {
      ...newLoad(recorded, 'probed', of),
      context_tokens: contextTokens,
      ok,
      by_device: byDevice ?? null,
      measured_bytes: byDevice ? deviceTotal(byDevice) : null,
      message: reason ?? null,
      room: roomBytes,
      limits,
    });
  },
};

const served: Handler<'ServingMeasured'> = {
  repeatable: true,
  touches,
  apply: (views, recorded) => {
    const data = recorded.event.data;
    views.serving_history.put({
      event_id: recorded.id,
      ...pairOf(recorded),
      call_id: data.callId,
      artifact: data.class.artifact,
      class_key: classKey(data.class),
      tokens_held: data.tokensHeld,
      kv_bytes: data.kvBytes ?? null,
      peak_by_device: data.peakByDevice ?? null,
      prompt_ms_per_token: data.promptMsPerToken ?? null,
      decode_ms_per_token: data.decodeMsPerToken ?? null,
      at: recorded.metadata.at,
      position: positionOf(recorded),
    });
  },
};

export const historyHandlers = {
  LoadProjected: projected,
  LoadMeasured: measured,
  LoadRefusedByEngine: refusedByEngine,
  ContextProbed: probed,
  ServingMeasured: served,
} satisfies Handlers;
