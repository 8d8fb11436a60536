import { expect, it } from 'vitest';
import { chooseWorker } from './workers.js';

it('the worker is the fastest, then the least displaced, then the first by name', () => {
  const offer = (name: string, displaced: number, seconds?: number) => ({
    name,
    displaced,
    ...(seconds === undefined ? {} : { seconds }),
  });
  expect(chooseWorker([offer('b', 0, 9), offer('a', 3, 5)])?.name).toBe('a');
  expect(chooseWorker([offer('b', 0, 5), offer('a', 3, 5)])?.name).toBe('b');
  expect(chooseWorker([offer('b', 0), offer('a', 0)])?.name).toBe('a');
  expect(chooseWorker([offer('a', 0), offer('b', 9, 100)])?.name).toBe('b');
});
