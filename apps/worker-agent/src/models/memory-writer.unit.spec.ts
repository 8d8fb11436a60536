import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryWriter } from './memory-writer.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('what is remembered', () => {
  it('is written once for all that changed until then, and again for what changed later', async () => {
    const write = vi.fn(() => Promise.resolve());
    const writer = new MemoryWriter(write, () => undefined);
    for (let i = 0; i < 10_000; i++) writer.changed();
    expect(write).not.toHaveBeenCalled();
    await vi.runAllTimersAsync();
    expect(write).toHaveBeenCalledTimes(1);
    writer.changed();
    await vi.runAllTimersAsync();
    expect(write).toHaveBeenCalledTimes(2);
  });

  it('is written at once at the end, after what is being written, and not a second time', async () => {
    const order: string[] = [];
    let done: () => void = () => undefined;
    const first = new Promise<void>((resolve) => (done = resolve));
    const writer = new MemoryWriter(
      async () => {
        order.push('begun');
        await first;
        order.push('written');
      },
      () => undefined,
    );
    const one = writer.now();
    writer.changed();
    const other = writer.now();
    done();
    await Promise.all([one, other]);
    await vi.runAllTimersAsync();
    expect(order).toEqual(['begun', 'written', 'begun', 'written']);
  });

  it('says what went wrong, and tries again with the next change', async () => {
    const heard: unknown[] = [];
    const write = vi.fn().mockRejectedValueOnce(new Error('the disk is full')).mockResolvedValue(undefined);
    const writer = new MemoryWriter(write, (error) => heard.push(error));
    writer.changed();
    await vi.runAllTimersAsync();
    expect(heard).toEqual([new Error('the disk is full')]);
    writer.changed();
    await vi.runAllTimersAsync();
    expect(write).toHaveBeenCalledTimes(2);
    expect(heard).toHaveLength(1);
  });
});
