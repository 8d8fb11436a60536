import type { CallId } from '../ids.js';
import type { DeviceBytes, PlacementClass } from '../placement-terms.js';
import type { EventOf } from './envelope.js';

/** Stream `history-<workerId>~<modelKey>`: what was projected and measured of one model on one worker. */
export type HistoryEvent =
  | EventOf<
      'LoadProjected',
      {
        readonly class: PlacementClass;
        readonly byDevice: readonly DeviceBytes[];
        /** Which oracle answered: `llama-fit-params`, `built-in`. */
        readonly source: string;
      }
    >
  | EventOf<
      'LoadMeasured',
      {
        readonly class: PlacementClass;
        readonly residentId: string;
        readonly byDevice: readonly DeviceBytes[];
        readonly hostAnonymousBytes: number;
        readonly hostResidentBytes: number;
        /** Spawn to serving. */
        readonly seconds: number;
        readonly predictedByDevice: readonly { readonly deviceId: string; readonly bytes: number }[];
        readonly callId?: CallId;
      }
    >
  | EventOf<
      'LoadRefusedByEngine',
      {
        readonly class: PlacementClass;
        readonly residentId: string;
        readonly failure: string;
        readonly message: string;
        readonly seconds: number;
        readonly roomBytes: readonly { readonly deviceId: string; readonly bytes?: number }[];
        /** As they stood when it failed; older events do not have them. */
        readonly limits?: readonly { readonly deviceId: string; readonly bytes: number }[];
      }
    >
  | EventOf<
      'ServingMeasured',
      {
        readonly callId: CallId;
        readonly class: PlacementClass;
        readonly tokensHeld: number;
        readonly kvBytes?: number;
        readonly peakByDevice?: readonly { readonly deviceId: string; readonly bytes: number }[];
        readonly promptMsPerToken?: number;
        readonly decodeMsPerToken?: number;
      }
    >
  | EventOf<
      'ContextProbed',
      {
        readonly class: PlacementClass;
        readonly contextTokens: number;
        readonly ok: boolean;
        /** Tokens that its cache was filled with before it was measured; left out when it was not. */
        readonly filledTokens?: number;
        readonly byDevice?: readonly DeviceBytes[];
        readonly reason?: string;
        /** Of the load that failed. */
        readonly failure?: string;
        readonly roomBytes: readonly { readonly deviceId: string; readonly bytes?: number }[];
        readonly limits: readonly { readonly deviceId: string; readonly bytes: number }[];
      }
    >;

export type HistoryEventType = HistoryEvent['type'];
export type HistoryEventData<T extends HistoryEventType> = Extract<HistoryEvent, { type: T }>['data'];
