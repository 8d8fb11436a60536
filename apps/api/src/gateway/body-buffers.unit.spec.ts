import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MIB } from '#domain/units.js';
import { BodyBuffers } from './body-buffers.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('gives a buffer again that was given back, and never one to two', () => {
  const buffers = new BodyBuffers();
  const first = buffers.take(100_000);
  const second = buffers.take(100_000);
  expect(first.length).toBeGreaterThanOrEqual(100_000);
  expect(second).not.toBe(first);
  buffers.giveBack(first);
  expect(buffers.take(3 * MIB)).not.toBe(first);
  expect(buffers.take(120_000)).toBe(first);
  expect(buffers.take(120_000)).not.toBe(first);
});

it('keeps no more than its bound, and nothing that nobody used for a while', () => {
  const buffers = new BodyBuffers();
  const taken = Array.from({ length: 40 }, () => buffers.take(MIB));
  taken.push(buffers.take(60 * MIB));
  for (const buffer of taken) buffers.giveBack(buffer);
  expect(buffers.keptBytes).toBe(32 * MIB);
  vi.advanceTimersByTime(10_000);
  expect(buffers.keptBytes).toBe(32 * MIB);
  vi.advanceTimersByTime(10_000);
  expect(buffers.keptBytes).toBe(0);
});
