import fc from 'fast-check';
import { expect, it } from 'vitest';
import { settingShown, settingText, settingValue } from './setting-text.js';

it('reads numbers, flags, lists and words as what they are, and nothing as taking it back', () => {
  expect(settingValue('8192')).toBe(8192);
  expect(settingValue('true')).toBe(true);
  expect(settingValue('q8_0')).toBe('q8_0');
  expect(settingValue('gpu-only, ram-only')).toEqual(['gpu-only', 'ram-only']);
  expect(settingValue('{"min": 1, "max": 2}')).toEqual({ min: 1, max: 2 });
  expect(settingValue('  ')).toBeNull();
});

it('shows a list without its brackets, and an empty one as none', () => {
  expect([['gpu-only', 'moe'], [], 'auto', 8].map(settingShown)).toEqual([
    'gpu-only, moe',
    'none',
    'auto',
    '8',
  ]);
});

it('reads back every value that it shows, but for words that are JSON themselves', () => {
  const value = fc.oneof(
    fc.integer(),
    fc.boolean(),
    fc.array(fc.integer(), { minLength: 1 }),
    fc.constantFrom('quality', 'auto'),
  );
  fc.assert(
    fc.property(value, (each) => {
      expect(settingValue(settingText(each))).toEqual(each);
    }),
  );
});
