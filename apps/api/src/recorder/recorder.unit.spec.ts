import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newId } from '#runtime/ids.js';
import { isoTime } from './iso-time.js';
import { callFinishedId } from './recorder.js';

describe('the recorder', () => {
  it('derives the id of an end from its call: always the same, a UUID, and not the call’s own', () => {
    const ids = Array.from({ length: 200 }, newId);
    const ends = ids.map(callFinishedId);
    expect(ends).toEqual(ids.map(callFinishedId));
    expect(new Set([...ids, ...ends]).size).toBe(400);
    for (const end of ends)
      expect(end).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(callFinishedId('some-other-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  });

  it('says a time as ISO 8601 in UTC says it', () => {
    const ms = fc.integer({ min: -62135596800000, max: 253402300799999 });
    fc.assert(fc.property(ms, (at) => isoTime(at) === new Date(at).toISOString()));
  });
});
