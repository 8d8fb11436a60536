import { expect, it } from 'vitest';
import { modelKey, residentId } from '#domain/ids.js';
import { isoBefore, NOW_MS, resident, residents, worker } from './testing/factories.js';
import { chooseWorker, isTooEarly, offerOf } from './workers.js';

it('the worker is the fastest with what it displaces, then the least displaced, then the first by name', () => {
  const offer = (name: string, displaced: number, outputSeconds?: number, lossSeconds = 0) => ({
    name,
    displaced,
    readySeconds: 3,
    lossSeconds,
    loading: false,
    ...(outputSeconds === undefined ? {} : { outputSeconds }),
  });
  expect(chooseWorker([offer('b', 0, 9), offer('a', 3, 5)])?.name).toBe('a');
  expect(chooseWorker([offer('b', 0, 5), offer('a', 3, 5)])?.name).toBe('b');
  expect(chooseWorker([offer('b', 0), offer('a', 0)])?.name).toBe('a');
  expect(chooseWorker([offer('a', 0), offer('b', 9, 100)])?.name).toBe('b');
  // A load that was measured half a second shorter is not worth a neighbour that is wanted soon.
  expect(chooseWorker([offer('a', 1, 5, 4), offer('b', 0, 5.5)])?.name).toBe('b');
});

it('a worker that loads already offers its place for after that', () => {
  const loading = resident('other', { phase: 'loading', loadStartedAt: isoBefore(0) });
  const [free, busy] = [worker(), worker({ residents: residents(loading) })].map((state) =>
    offerOf(state, new Map(), { predicted: { loadSeconds: 4 }, victims: [] }, NOW_MS),
  );
  expect(free?.readySeconds).toBe(4);
  expect(busy?.readySeconds).toBeGreaterThan(4);
});

it('nobody is displaced for a load that would have to share the disk with one under way', () => {
  const loading = resident('other', { phase: 'loading', loadStartedAt: isoBefore(0) });
  const victim = { residentId: residentId('r'), modelKey: modelKey('m'), lossSeconds: 1, frees: [] };
  const offers = [worker(), worker({ residents: residents(loading) })].flatMap((state) =>
    [[], [victim]].map((victims) => offerOf(state, new Map(), { predicted: {}, victims }, NOW_MS)),
  );
  expect(offers.map(isTooEarly)).toEqual([false, false, false, true]);
});
