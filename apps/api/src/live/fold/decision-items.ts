import type {
  PlacementDecidedData,
  PlacementRefusedData,
  Recorded,
  WorkerEvent,
} from '#domain/events/index.js';
import type { DecisionItem, EvictionItem } from '#domain/wire/index.js';
import { present } from '../../admin/views/present.js';

type Decided = Extract<WorkerEvent, { type: 'PlacementDecided' | 'PlacementRefused' }>;

/** A decision or refusal as it was taken. */
export function decisionItem(workerId: string, recorded: Recorded<Decided>): DecisionItem {
  const { event, id, metadata } = recorded;
  const common = {
    eventId: id,
    workerId,
    decidedAt: metadata.at,
    ...sharedOf(event.data),
    actual: {},
  };
  if (event.type === 'PlacementRefused') {
    const { code, reason, count } = event.data;
    return {
      ...common,
      admitted: false,
      state: 'refused',
      victims: [],
      predicted: {},
      code,
      reason,
      refusals: count,
    };
  }
  const { data } = event;
  return {
    ...common,
    admitted: true,
    state: 'open',
    artifact: data.artifact,
    rung: data.rung,
    residentId: data.residentId,
    contextTokens: data.contract.contextTokens,
    slots: data.contract.slots,
    kvType: data.contract.kvType,
    needBytes: data.need.reduce((sum, term) => sum + (term.bytes ?? 0), 0),
    victims: data.victims.map((victim) => victim.residentId),
    predicted: present({
      readySeconds: data.predicted.readyInSeconds,
      loadSeconds: data.predicted.loadSeconds,
      outputSeconds: data.predicted.outputSeconds,
    }),
    validUntil: data.validUntil,
  };
}

const sharedOf = (data: PlacementDecidedData | PlacementRefusedData) => ({
  decisionId: data.decisionId,
  modelKey: data.modelKey,
  cause: data.cause.kind,
  ...(data.cause.kind === 'call' ? { callId: data.cause.callId } : {}),
});

const seconds = (from: string | undefined, to: string): number | undefined => {
  const value = (Date.parse(to) - Date.parse(from ?? '')) / 1000;
  return Number.isFinite(value) ? value : undefined;
};

/** What an event of its resident makes of an open decision; undefined when it says nothing of it. */
export function decisionAfter(
  open: DecisionItem,
  recorded: Recorded<WorkerEvent>,
  loadStartedAt: string | undefined,
): DecisionItem | undefined {
  const { event, id, metadata } = recorded;
  const { type, data } = event;
  const over = { endedAt: metadata.at, endedByEvent: id };
  if (type === 'LoadStarted') {
    const readySeconds = seconds(open.decidedAt, metadata.at);
    return { ...open, actual: { ...open.actual, ...present({ readySeconds }) } };
  }
  if (type === 'ResidentReady') {
    const loadSeconds = seconds(loadStartedAt, data.loadedAt);
    return { ...open, state: 'ready', actual: { ...open.actual, ...present({ loadSeconds }) }, ...over };
  }
  if (type === 'LoadFailed')
    return { ...open, state: 'failed', failureClass: data.class, reason: data.message, ...over };
  if (type === 'DecisionClosed')
    return { ...open, state: 'closed', code: data.why, reason: data.reason, ...over };
  const failureClass = ENDED_BY[type];
  return failureClass === undefined ? undefined : { ...open, state: 'failed', failureClass, ...over };
}

/** Ends of a resident that fail the decision that made it. */
const ENDED_BY: Partial<Record<WorkerEvent['type'], string>> = {
  ResidentEvicted: 'evicted',
  ResidentCrashed: 'crashed',
  ResidentFoundGone: 'found-gone',
};

type EvictionEvent = Extract<WorkerEvent, { type: 'EvictionStarted' | 'ResidentEvicted' | 'EvictionFailed' }>;

export const evictionItem = (
  workerId: string,
  recorded: Recorded<EvictionEvent>,
  modelKey: string | undefined,
): EvictionItem => ({
  evictionId: recorded.id,
  residentId: recorded.event.data.residentId,
  workerId,
  reason: recorded.event.data.reason,
  state: 'running',
  ...present({ decisionId: recorded.event.data.decisionId, modelKey }),
  ...(recorded.event.type === 'EvictionStarted' ? { startedAt: recorded.metadata.at } : {}),
});

export function evictionEnded(running: EvictionItem, recorded: Recorded<WorkerEvent>): EvictionItem {
  const { event, metadata } = recorded;
  const endedAt = metadata.at;
  if (event.type === 'ResidentEvicted') {
    const { freed, seconds: took } = event.data;
    const freedBytes = freed.reduce((sum, { bytes }) => sum + bytes, 0);
    return { ...running, state: 'done', freed, freedBytes, seconds: took, endedAt };
  }
  if (event.type === 'EvictionFailed') {
    return { ...running, state: 'failed', failure: event.data.why, message: event.data.message, endedAt };
  }
  const how = event.type === 'ResidentCrashed' ? 'crashed' : 'found-gone';
  return { ...running, state: 'overtaken', endedAt, message: `The resident ended: ${how}.` };
}
