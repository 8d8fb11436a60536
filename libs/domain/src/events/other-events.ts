import type { EventOf } from './envelope.js';

/** Streams `settings-<scope>`, `key-<keyId>`, `operator-<workerId>`, `pull-<workerId>`. */
export type SettingsEvent = EventOf<
  'SettingsChanged',
  { readonly patch: Readonly<Record<string, unknown>>; readonly by: string }
>;

export type KeyEvent =
  | EventOf<
      'KeyIssued',
      {
        readonly keyId: string;
        readonly name: string;
        readonly scope: 'use' | 'admin';
        /** SHA-256 of the secret, hex. The secret itself is shown once and kept nowhere. */
        readonly sha256: string;
        readonly expiresAt?: string;
        /** Keys of the only models that it opens; left out: all. */
        readonly models?: readonly string[];
      }
    >
  | EventOf<'KeyRevoked', { readonly keyId: string; readonly by: string }>;

export type OperatorEvent =
  | EventOf<
      'OperatorActionRequested',
      { readonly actionId: string; readonly action: string; readonly target: string; readonly by: string }
    >
  | EventOf<'OperatorActionStarted', { readonly actionId: string }>
  | EventOf<
      'OperatorActionFinished',
      { readonly actionId: string; readonly state: 'done' | 'failed'; readonly result: string }
    >;

export type PullEvent =
  | EventOf<'PullRequested', { readonly pullId: string; readonly source: string; readonly by: string }>
  | EventOf<
      'FilePulled',
      {
        readonly pullId: string;
        readonly file: string;
        readonly bytes: number;
        readonly seconds: number;
        readonly sha256?: string;
        readonly resumedFromBytes: number;
      }
    >
  | EventOf<'PullFinished', { readonly pullId: string }>
  | EventOf<'PullRefused', { readonly pullId: string; readonly reason: string }>
  | EventOf<'PullFailed', { readonly pullId: string; readonly reason: string }>;
