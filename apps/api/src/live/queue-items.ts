import type { ActivityItem, QueueItem, ReadingItem } from '#domain/wire/index.js';
import type { Activity } from '../admission/activity.js';
import type { Admission } from '../admission/admission.js';
import type { AgentSessions } from '../agents/sessions.js';
import type { Fleet } from '../fleet/fleet.js';

/** The queue as it stands now: its order, what was predicted, and why each call waits. */
export function queueItems(
  admission: Pick<Admission, 'queue'>,
  sessions: Pick<AgentSessions, 'progressOf'>,
  nowMs: number,
): readonly QueueItem[] {
  return admission.queue.map((call) => {
    const { wanted, ticket, firstPlace, freeInSeconds, loading } = call;
    const progress = loading && sessions.progressOf(loading.residentId);
    return {
      callId: ticket.callId,
      place: call.place,
      modelKey: ticket.modelKey,
      phase: call.phase,
      why: call.why,
      background: ticket.background,
      promptTokens: ticket.promptTokens,
      ...(ticket.maxTokens === undefined ? {} : { maxTokens: ticket.maxTokens }),
      receivedAt: new Date(wanted.receivedAtMs).toISOString(),
      waitedSeconds: (nowMs - wanted.receivedAtMs) / 1000,
      maxWaitSeconds: wanted.settings.maxWaitSeconds,
      ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
      ...(loading ? { loading: { ...loading, ...progress } } : {}),
      ...(firstPlace ? { predicted: firstPlace } : {}),
    };
  });
}

/** What residents do now, through this api, and how far loads are. */
export function activityItems(
  fleet: Pick<Fleet, 'workers'>,
  sessions: Pick<AgentSessions, 'progressOf'>,
  activity: Pick<Activity, 'inFlight' | 'lastCallEndedAtMs'>,
): readonly ActivityItem[] {
  return [...fleet.workers.values()].flatMap(({ workerId, residents }) =>
    [...residents.values()].map(({ residentId, phase }) => {
      const loading = phase === 'loading' ? sessions.progressOf(residentId) : undefined;
      const lastMs = activity.lastCallEndedAtMs(residentId);
      return {
        residentId,
        workerId,
        callsInFlight: activity.inFlight(residentId),
        ...(lastMs === undefined ? {} : { lastCallAt: new Date(lastMs).toISOString() }),
        ...(loading ? { loading } : {}),
      };
    }),
  );
}

/** What the devices of connected agents said last. */
export function readingItems(
  sessions: Pick<AgentSessions, 'connected' | 'readingsOf'>,
): readonly ReadingItem[] {
  return sessions.connected.flatMap((workerId) => {
    const read = sessions.readingsOf(workerId);
    if (!read) return [];
    const devices = (read.devices ?? []).map(({ deviceId, known, ...figures }) =>
      known === false ? { deviceId } : { deviceId, ...figures },
    );
    const busy = read.cpuBusyCores === undefined ? {} : { cpuBusyCores: read.cpuBusyCores };
    return [{ workerId, at: read.at, ...busy, devices }];
  });
}
