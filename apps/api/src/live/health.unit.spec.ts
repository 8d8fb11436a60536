import { describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import type { AgentSessions } from '../agents/sessions.js';
import type { Fleet } from '../fleet/fleet.js';
import { type HealthParts, healthOf } from './health.js';

const worker = { workerId: 'w', name: 'here', registered: true };
const parts = (over: Partial<HealthParts> = {}): HealthParts => ({
  fleet: { workers: new Map([['w', worker]]), logAwaySinceMs: undefined } as unknown as Fleet,
  sessions: { isConnected: () => true } as unknown as AgentSessions,
  spool: { lost: 0, waitingEvents: 0, writeFailure: undefined },
  diskFreeBytes: () => 10_000 * MIB,
  version: '1',
  now: () => 0,
  ...over,
});

describe('health', () => {
  it('is ok while everything works', () => {
    expect(healthOf(parts())).toMatchObject({ status: 'ok', degraded: [] });
    expect(healthOf(parts({ diskFreeBytes: () => undefined }))).toMatchObject({ status: 'ok' });
  });

  it('is not ok on a full disk, and says how much is left', () => {
    const { status, degraded } = healthOf(parts({ diskFreeBytes: () => 3 * MIB }));
    expect(status).toBe('degraded');
    expect(degraded.join()).toContain('3.0 MiB');
  });

  it('is not ok while call events cannot be written to disk', () => {
    const spool = { lost: 0, waitingEvents: 0, writeFailure: 'ENOSPC: no space left on device' };
    expect(healthOf(parts({ spool })).degraded.join()).toContain('ENOSPC');
  });
});
