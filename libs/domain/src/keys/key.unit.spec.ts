import { describe, expect, it } from 'vitest';
import type { KeyEvent } from '../events/other-events.js';
import { LogOf } from '../testing/given.js';
import { evolveKey, initialKey, revokeKey, whyUnusable } from './key.js';

const issued = (over: { expiresAt?: string } = {}): KeyEvent => ({
  type: 'KeyIssued',
  data: { keyId: 'k1', name: 'laptop', scope: 'use', sha256: 'ff', ...over },
});
const revoked: KeyEvent = { type: 'KeyRevoked', data: { keyId: 'k1', by: 'cli' } };
const fold = (...events: KeyEvent[]) => {
  const log = new LogOf<KeyEvent>('key-k1');
  for (const event of events) log.add(event);
  return log.recorded.reduce(evolveKey, initialKey());
};

describe('an API key', () => {
  it('opens from its issue until it is revoked or expires', () => {
    expect(whyUnusable(fold(), 0)).toBe('never-issued');
    expect(whyUnusable(fold(issued()), 0)).toBeUndefined();
    expect(whyUnusable(fold(issued(), revoked), 0)).toBe('revoked');
    const expiring = fold(issued({ expiresAt: '1970-01-01T00:01:00.000Z' }));
    expect(whyUnusable(expiring, 59_999)).toBeUndefined();
    expect(whyUnusable(expiring, 60_000)).toBe('expired');
  });

  it('is revoked once, and never comes back by a second issue', () => {
    expect(revokeKey(fold(issued()), 'cli')).toEqual({ ok: true, value: [revoked] });
    expect(revokeKey(fold(issued(), revoked), 'cli')).toEqual({ ok: true, value: [] });
    expect(revokeKey(fold(), 'cli')).toMatchObject({ ok: false, error: { code: 'not_found' } });
    expect(whyUnusable(fold(issued(), revoked, issued()), 0)).toBe('revoked');
  });
});
