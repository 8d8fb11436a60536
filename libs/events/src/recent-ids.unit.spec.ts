import { expect, it } from 'vitest';
import { RecentIds } from './recent-ids.js';

it('remembers the last ids that were added and tells which it forgot, oldest first', () => {
  const forgotten: string[] = [];
  const recent = new RecentIds(2, (id) => forgotten.push(id));
  expect(['a', 'b', 'a', 'c', 'b', 'a'].map((id) => recent.add(id))).toEqual([
    true,
    true,
    false,
    true,
    false,
    true,
  ]);
  expect(forgotten).toEqual(['a', 'b']);
});
