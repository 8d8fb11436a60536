import { expect, test } from 'vitest';
import { checkExpectation, decideAppend, type StreamFacts } from './expectation.js';

const facts = (given: Partial<StreamFacts> & { ids?: readonly string[] } = {}): StreamFacts => {
  const ids = given.ids ?? [];
  return {
    stream: 's',
    last: ids.length - 1,
    tombstoned: false,
    softDeleted: false,
    hasMetadata: false,
    remembered: (id) =>
      ids.includes(id) ? { revision: ids.lastIndexOf(id), position: 10 * ids.lastIndexOf(id) } : undefined,
    eventAt: (revision) => {
      const id = ids[revision];
      return id === undefined ? undefined : { id, position: 10 * revision };
    },
    ...given,
  };
};
const write = { kind: 'write' };
const wrong = expect.objectContaining({ code: 'wrong-expected-version' }) as Error;
const dead = expect.objectContaining({ code: 'stream-deleted' }) as Error;

test('an exact expectation is met at the end of the stream alone', () => {
  expect(decideAppend(facts({ ids: ['a', 'b'] }), 1, ['c'])).toEqual(write);
  expect(() => decideAppend(facts({ ids: ['a', 'b'] }), 2, ['c'])).toThrow(wrong);
  expect(() => decideAppend(facts({ ids: ['a', 'b'] }), 0, ['c'])).toThrow(wrong);
  expect(decideAppend(facts(), 'no_stream', ['a'])).toEqual(write);
});

test('behind the end, the ids in the log decide; more ids than the log has are not the same append', () => {
  const log = facts({ ids: ['a', 'b', 'c'] });
  expect(decideAppend(log, 'no_stream', ['a', 'b'])).toEqual({
    kind: 'already-written',
    revision: 1,
    position: 10,
  });
  expect(decideAppend(log, 0, ['b', 'c'])).toMatchObject({ revision: 2 });
  expect(() => decideAppend(log, 0, ['b', 'c', 'd'])).toThrow(wrong);
  expect(() => decideAppend(log, 0, [])).toThrow(wrong);
});

test('nothing goes to a tombstoned stream, and stream_exists not to a deleted one', () => {
  expect(() => decideAppend(facts({ tombstoned: true }), 'any', ['a'])).toThrow(dead);
  expect(() => decideAppend(facts({ ids: ['a'], softDeleted: true }), 'stream_exists', ['b'])).toThrow(dead);
  expect(() => checkExpectation(facts({ tombstoned: true }), 'any')).toThrow(dead);
});

test('stream_exists is met by metadata alone', () => {
  expect(() => decideAppend(facts(), 'stream_exists', ['a'])).toThrow(wrong);
  expect(decideAppend(facts({ hasMetadata: true }), 'stream_exists', ['a'])).toEqual(write);
});

test('a deleted stream counts as none, unless the append stands in the log already', () => {
  const deleted = facts({ ids: ['a', 'b'], softDeleted: true });
  expect(decideAppend(deleted, 'no_stream', ['c'])).toEqual(write);
  expect(decideAppend(deleted, 1, ['c'])).toEqual(write);
  expect(decideAppend(deleted, 'no_stream', ['a'])).toMatchObject({ kind: 'already-written', revision: 0 });
  expect(() => decideAppend(deleted, 0, ['c'])).toThrow(wrong);
});
