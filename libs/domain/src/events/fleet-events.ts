import type { ApiId } from '../ids.js';
import type { EventOf } from './envelope.js';

/** Stream `fleet-apis`: which api processes there are, so that agents can dial them and lost calls can be closed. */
export type FleetEvent =
  | EventOf<
      'ApiStarted',
      {
        readonly apiId: ApiId;
        readonly host: string;
        /** Boot id of the machine: a pid of another boot says nothing. */
        readonly bootId: string;
        readonly pid: number;
        readonly pidStartTicks?: number;
        /** Where agents dial: `127.0.0.1:41231`. */
        readonly agentLine: string;
        readonly version: string;
        readonly startedAt: string;
      }
    >
  | EventOf<'ApiStopped', { readonly apiId: ApiId }>
  | EventOf<'ApiLost', { readonly apiId: ApiId; readonly foundBy: ApiId; readonly reason: string }>;

/** Stream `log-identity`: the first event of every log. Checkpoints carry it; another log means rebuild. */
export type IdentityEvent = EventOf<'LogCreated', { readonly logId: string; readonly createdAt: string }>;
