import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BerthFailure } from '#domain/errors.js';
import { decodeCursor, decodePosition, encodeCursor, pageOf } from './page.js';

describe('a page', () => {
  it('has a next one only when there are more rows than its limit', () => {
    const keyOf = (row: string) => [row];
    expect(pageOf(['a', 'b'], 2, keyOf, (row) => row)).toEqual({ items: ['a', 'b'] });
    const page = pageOf(['a', 'b', 'c'], 2, keyOf, (row) => row);
    expect(page.items).toEqual(['a', 'b']);
    expect(decodeCursor(page.next ?? '', 1)).toEqual(['b']);
  });

  it('gives any key back from its cursor', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 3 }), (key) => {
        expect(decodeCursor(encodeCursor(...key), key.length)).toEqual(key);
      }),
    );
  });

  it('refuses any text that is no cursor of the list, by the name of the field', () => {
    const refused = (text: string) => {
      try {
        decodePosition(text);
      } catch (error) {
        return error instanceof BerthFailure ? [error.error.code, error.error.param] : error;
      }
      return 'taken';
    };
    for (const text of ['', '!!', encodeCursor('1', '2'), encodeCursor('1 or 1=1'), encodeCursor('-1')]) {
      expect([text, refused(text)]).toEqual([text, ['invalid_request', 'after']]);
    }
    expect(decodePosition(encodeCursor('18446744073709551615'))).toBe('18446744073709551615');
  });
});
