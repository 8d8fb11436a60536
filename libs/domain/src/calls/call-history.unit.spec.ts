import { describe, expect, it } from 'vitest';
import type { CallStamps } from '../events/call-events.js';
import { waitSecondsOf } from './call-history.js';

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const stamps = (seconds: Partial<Record<keyof CallStamps, number>>): CallStamps => ({
  receivedAt: at(0),
  finishedAt: at(100),
  ...Object.fromEntries(Object.entries(seconds).map(([name, value]) => [name, at(value)])),
});

describe('what a call waited beyond the load of its model', () => {
  it.each([
    ['nothing, for one that came straight through', { forwardedAt: 0 }, 0],
    ['its time in the queue, for one that waited for a slot', { queuedAt: 0, forwardedAt: 7 }, 7],
    ['all but the load', { queuedAt: 0, decidedAt: 4, readyAt: 44, forwardedAt: 45 }, 5],
    [
      'all of it, for one that waited and found its model there',
      { queuedAt: 1, decidedAt: 4, forwardedAt: 9 },
      8,
    ],
    ['unknown, for one that reached no engine', { queuedAt: 0, decidedAt: 4, readyAt: 44 }, undefined],
  ] as const)('%s', (_, given, seconds) => {
    expect(waitSecondsOf(stamps(given))).toBe(seconds);
  });
});
