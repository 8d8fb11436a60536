import type { Spool } from '#events/spool.js';
import type { AgentSessions } from '../agents/sessions.js';
import type { Fleet } from '../fleet/fleet.js';

export interface Health {
  readonly status: 'ok' | 'degraded';
  readonly service: 'berth';
  readonly version: string;
  readonly worker: string | null;
  readonly workers: readonly { readonly id: string; readonly name: string; readonly connected: boolean }[];
  /** What does not work as it should, in sentences. */
  readonly degraded: readonly string[];
}

export interface HealthParts {
  readonly fleet: Fleet;
  readonly sessions: AgentSessions;
  readonly spool: Pick<Spool, 'lost' | 'waitingEvents'>;
  readonly version: string;
  readonly now: () => number;
}

/** Call events wait a moment in the spool at any time; this many mean that the log does not take them. */
const MANY_WAITING = 10_000;

export function healthOf({ fleet, sessions, spool, version, now }: HealthParts): Health {
  const workers = [...fleet.workers.values()]
    .filter((worker) => worker.registered)
    .map(({ workerId, name }) => ({ id: workerId, name, connected: sessions.isConnected(workerId) }));
  const degraded: string[] = [];
  const away = fleet.logAwaySinceMs;
  if (away !== undefined) {
    const seconds = Math.round((now() - away) / 1000);
    degraded.push(
      `The event log has been out of reach for ${seconds} s: loaded models serve, nothing new is placed.`,
    );
  }
  if (!workers.some((worker) => worker.connected)) {
    degraded.push('No worker agent is connected: loaded models serve, nothing can be loaded.');
  } else {
    for (const worker of workers)
      if (!worker.connected) degraded.push(`The agent of ${worker.name} is not connected.`);
  }
  if (spool.lost > 0)
    degraded.push(`${spool.lost} call events were lost: the spool was full or could not be written.`);
  if (spool.waitingEvents > MANY_WAITING)
    degraded.push(`${spool.waitingEvents} call events wait for the event log.`);
  return {
    status: degraded.length === 0 ? 'ok' : 'degraded',
    service: 'berth',
    version,
    worker: workers[0]?.name ?? null,
    workers,
    degraded,
  };
}
