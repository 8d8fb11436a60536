import type { Access } from '../access/access.js';
import type { Activity } from '../admission/activity.js';
import type { Admission } from '../admission/admission.js';
import type { AgentSessions } from '../agents/sessions.js';
import type { Logger } from '#runtime/logger.js';
import { activityItems, queueItems, readingItems } from './queue-items.js';
import { LiveHub, type LiveHubOptions } from './socket/live-hub.js';
import { LiveServer } from './socket/live-server.js';
import { Moments } from './socket/moments.js';
import type { Upgrade } from './socket/upgrades.js';

export interface LiveParts extends LiveHubOptions {
  readonly access: Pick<Access, 'management'>;
  readonly admission: Pick<Admission, 'queue'>;
  readonly sessions: Pick<AgentSessions, 'progressOf' | 'connected' | 'readingsOf'>;
  readonly activity: Pick<Activity, 'inFlight' | 'lastCallEndedAtMs'>;
  readonly logger: Logger;
  readonly now: () => number;
}

export interface Live {
  readonly hub: LiveHub;
  readonly upgrade: Upgrade;
  /** Lets go of every client. */
  hangUp(): void;
  /** Lets go of the log. */
  stop(): Promise<void>;
}

/** Everything behind `/live`: it reads nothing and costs nothing before the first client comes. */
export function createLive(parts: LiveParts): Live {
  const { access, fleet, admission, sessions, activity, logger, now } = parts;
  const hub = new LiveHub(parts);
  const moments = new Moments(
    {
      queue: () => queueItems(admission, sessions, now()),
      activity: () => activityItems(fleet, sessions, activity),
      readings: () => readingItems(sessions),
    },
    () => hub.clients,
    now,
  );
  const server = new LiveServer({ access, hub, moments, logger, now });
  return {
    hub,
    upgrade: (req, socket, head) => void server.upgrade(req, socket, head),
    hangUp: () => server.stop(),
    stop: () => hub.stop(),
  };
}
