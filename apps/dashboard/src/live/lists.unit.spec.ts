import { expect, it } from 'vitest';
import { merged } from './lists.js';

interface Item {
  readonly id: string;
  readonly at: string;
  readonly state: string;
}
const item = (id: string, at: string, state = 'done'): Item => ({ id, at, state });
const parts = (state?: string) => ({
  keyOf: (each: Item) => each.id,
  timeOf: (each: Item) => each.at,
  wanted: (each: Item) => state === undefined || each.state === state,
});

it('puts what happened since above the pages, and the newer form of an item in its place', () => {
  const list = merged([item('b', '2', 'open'), item('a', '1')], [item('c', '3'), item('b', '2')], parts());
  expect(list.map(({ id, state }) => `${id} ${state}`)).toEqual(['c done', 'b done', 'a done']);
});

it('keeps out what was not asked for, what no longer is, and what is older than the last page read', () => {
  const list = merged(
    [item('b', '5', 'open')],
    [item('c', '6'), item('b', '5'), item('old', '1', 'open'), item('d', '7', 'open')],
    parts('open'),
  );
  expect(list.map(({ id }) => id)).toEqual(['d']);
});
