import type { StreamFold } from '../decider.js';
import { berthError } from '../errors.js';
import type { Recorded } from '../events/envelope.js';
import type { DataOf, KeyEvent } from '../events/index.js';
import type { Result } from '../result.js';

/** One API key. Only the hash of its secret is known. */
export interface KeyState {
  readonly issued?: DataOf<'KeyIssued'> & { readonly at: string };
  readonly revoked?: { readonly by: string; readonly at: string };
  readonly revision: number;
}

export const initialKey = (): KeyState => ({ revision: -1 });

/** Folds one event of `key-<keyId>`. A key is issued once and revoked once; what comes after changes nothing. */
export function evolveKey(state: KeyState, recorded: Recorded<KeyEvent>): KeyState {
  const { event, revision, metadata } = recorded;
  if (revision <= state.revision) return state;
  switch (event.type) {
    case 'KeyIssued':
      return { ...state, revision, issued: state.issued ?? { ...event.data, at: metadata.at } };
    case 'KeyRevoked':
      return { ...state, revision, revoked: state.revoked ?? { by: event.data.by, at: metadata.at } };
  }
}

export const keyFold: StreamFold<KeyState, KeyEvent> = {
  version: 1,
  initial: initialKey,
  evolve: evolveKey,
};

/** Why a key opens nothing at this time; undefined when it is good. */
export function whyUnusable(
  key: KeyState,
  nowMs: number,
): 'never-issued' | 'revoked' | 'expired' | undefined {
  if (!key.issued) return 'never-issued';
  if (key.revoked) return 'revoked';
  const { expiresAt } = key.issued;
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs ? 'expired' : undefined;
}

/** @returns no event when it is revoked already. */
export function revokeKey(state: KeyState, by: string): Result<readonly KeyEvent[]> {
  if (!state.issued) return { ok: false, error: berthError('not_found', 'There is no such key.') };
  if (state.revoked) return { ok: true, value: [] };
  return { ok: true, value: [{ type: 'KeyRevoked', data: { keyId: state.issued.keyId, by } }] };
}
