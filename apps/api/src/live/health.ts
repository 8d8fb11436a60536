import { formatBytes, MIB } from '#domain/units.js';
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
  readonly spool: Pick<Spool, 'lost' | 'waitingEvents' | 'writeFailure'>;
  /** Bytes free where Berth keeps its own files; undefined until it is known. */
  readonly diskFreeBytes: () => number | undefined;
  readonly version: string;
  readonly now: () => number;
}

/** The log, the spool and Postgres write on, each by its own measure; this is where a person should look. */
const LEAST_FREE_BYTES = 256 * MIB;
/** Call events wait a moment in the spool at any time; this many mean that the log does not take them. */
const MANY_WAITING = 10_000;

export function healthOf(parts: HealthParts): Health {
  const { fleet, sessions, spool, diskFreeBytes, version, now } = parts;
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
  const free = diskFreeBytes();
  if (free !== undefined && free < LEAST_FREE_BYTES) {
    degraded.push(
      `The disk that holds Berth's files has ${formatBytes(free)} left; below ${formatBytes(LEAST_FREE_BYTES)} what is to be kept may not be: free some of it.`,
    );
  }
  if (spool.writeFailure !== undefined) {
    degraded.push(
      `Call events cannot be written to disk (${spool.writeFailure}); those that the event log has not taken would not survive this process.`,
    );
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
