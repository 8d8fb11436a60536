import { expect, it } from 'vitest';
import { placeOf, to } from './places.js';

it('reads back every place that it links to, keys with slashes among them', () => {
  const place = placeOf(to(['models', 'owner/repo?#%'], { tab: 'a&b', none: undefined }));
  expect([place.page, place.rest, [...place.query]]).toEqual(['models', ['owner/repo?#%'], [['tab', 'a&b']]]);
});

it('takes an empty address for the overview and a broken one as it stands', () => {
  expect(placeOf('').page).toBe('overview');
  expect(placeOf('#/models/%zz').rest).toEqual(['%zz']);
});
