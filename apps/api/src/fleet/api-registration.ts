import { hostname } from 'node:os';
import type { ApiId } from '#domain/ids.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import { bootId, pidStartTicks } from '#runtime/process-info.js';

export interface ApiIdentity {
  readonly apiId: ApiId;
  /** Where agents dial. */
  readonly agentLine: string;
  readonly version: string;
  readonly now: () => number;
}

const STOPPED_DEADLINE_MS = 3000;

/** Tells the fleet that this api is there: agents dial every api that the log names. @throws when the log refuses. */
export async function registerApi(log: EventLog, identity: ApiIdentity): Promise<void> {
  const { apiId, agentLine, version, now } = identity;
  const ticks = pidStartTicks(process.pid);
  const event = {
    id: derivedId('ApiStarted', apiId),
    event: {
      type: 'ApiStarted' as const,
      data: {
        apiId,
        host: hostname(),
        bootId: bootId(),
        pid: process.pid,
        ...(ticks === undefined ? {} : { pidStartTicks: ticks }),
        agentLine,
        version,
        startedAt: new Date(now()).toISOString(),
      },
    },
    cause: { correlationId: apiId, causationId: apiId },
  };
  for (;;) {
    const outcome = await log.append(streams.apis, [event], 'any');
    if (outcome.ok) return;
    // Its outcome is unknown; the same id is folded once.
    if (outcome.error.kind === 'unavailable') continue;
    throw new Error(`The event log did not take the start of this api (${outcome.error.kind}).`);
  }
}

/** The orderly end. When the log cannot be told, the next api finds this one gone and says so. */
export async function unregisterApi(log: EventLog, apiId: ApiId, logger: Logger): Promise<void> {
  const outcome = await log.append(
    streams.apis,
    [
      {
        id: derivedId('ApiStopped', apiId),
        event: { type: 'ApiStopped', data: { apiId } },
        cause: { correlationId: apiId, causationId: apiId },
      },
    ],
    'any',
    { deadlineMs: STOPPED_DEADLINE_MS },
  );
  if (!outcome.ok) logger.warn({ why: outcome.error.kind }, 'the log could not be told that this api stops');
}
