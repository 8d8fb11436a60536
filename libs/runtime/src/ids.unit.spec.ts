import { validate, version } from 'uuid';
import { describe, expect, it } from 'vitest';
import { derivedId, newId } from './ids.js';

describe('a new id', () => {
  it('is a UUID of version 7 with the time in front, and comes after every one before it', () => {
    const before = Date.now();
    const ids = Array.from({ length: 20_000 }, newId);
    const after = Date.now();
    for (const id of ids) {
      expect(validate(id)).toBe(true);
      expect(version(id)).toBe(7);
    }
    const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    expect(timeOf(ids[0]!)).toBeGreaterThanOrEqual(before);
    expect(timeOf(ids.at(-1)!)).toBeLessThanOrEqual(after);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
    // What is random of it differs from one to the next.
    expect(new Set(ids.map((id) => id.slice(24))).size).toBe(ids.length);
  });
});

it('derives the same id from the same parts, and another from others', () => {
  expect(derivedId('a', 'b')).toBe(derivedId('a', 'b'));
  expect(derivedId('a', 'b')).not.toBe(derivedId('a', 'c'));
});

it('derives the ids that logs hold already: a retry of a later version finds its first try', () => {
  expect(derivedId('CallFinished', '0197a2f4-0000-7000-8000-000000000001')).toBe(
    '5c7fc7bf-d683-5bb8-81ab-de3b00113dbd',
  );
  expect(derivedId('größe', '日本')).toBe('d424fa45-aadf-5ad0-aa02-1d55c4298e42');
});
