import { expect, test } from 'vitest';
import { firstByCount } from './event-reader.js';
import { isSoftDeleted, NO_METADATA, parseMetadata, SOFT_DELETE_METADATA } from './stream-metadata.js';

test('what is no JSON object, and values that are no integers, change nothing', () => {
  for (const text of ['', 'null', '[1]', '{', '"$tb"']) expect(parseMetadata(text)).toEqual(NO_METADATA);
  expect(parseMetadata('{"$tb":1.5,"$maxCount":"3","$maxAge":-1}')).toMatchObject({
    truncateBefore: 0,
    maxCount: Infinity,
    maxAgeSeconds: Infinity,
  });
});

test('a soft delete is known by its $tb, however a reader rounds it', () => {
  expect(isSoftDeleted(parseMetadata(SOFT_DELETE_METADATA))).toBe(true);
  expect(isSoftDeleted(parseMetadata('{"$tb":9007199254740991}'))).toBe(false);
});

test('of the lower bounds the greatest holds', () => {
  const at = (text: string) => firstByCount(parseMetadata(text), 99);
  expect(at('{}')).toBe(0);
  expect(at('{"$maxCount":10}')).toBe(90);
  expect(at('{"$maxCount":10,"$tb":95}')).toBe(95);
  expect(at('{"$maxCount":1000,"$tb":3}')).toBe(3);
});

test('roles are read as one or as a list', () => {
  const { acl } = parseMetadata('{"$acl":{"$r":"a","$w":["b","$admins"],"$mr":7}}');
  expect(acl).toMatchObject({ read: ['a'], write: ['b', '$admins'], metaRead: undefined, delete: undefined });
});
