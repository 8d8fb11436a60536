import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CallClient } from './client.js';
import { Relay } from './relay.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A caller whose connection is full after every write. */
function slowCaller() {
  const res = Object.assign(new EventEmitter(), {
    destroyed: false,
    destroy: () => void (res.destroyed = true),
  });
  const client = {
    res,
    left: false,
    headSent: false,
    head: () => undefined,
    write: () => false,
    end: () => undefined,
  };
  const engine = { paused: 0, resumed: 0, abort: () => undefined };
  const controller = {
    abort: engine.abort,
    pause: () => void (engine.paused += 1),
    resume: () => void (engine.resumed += 1),
  };
  const relay = new Relay({
    client: client as unknown as CallClient,
    stream: true,
    dropUsageChunk: false,
    native: false,
    body: Buffer.alloc(0),
    onFirstByte: () => undefined,
    onEnd: () => undefined,
  });
  relay.onRequestStart(controller);
  relay.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' });
  const say = () => relay.onResponseData(controller, Buffer.from('data: {"choices":[]}\n\n'));
  return { res, engine, say };
}

describe('a caller that reads slowly', () => {
  it('pauses its engine until it has read, thousands of times, and nothing of one stays', () => {
    const { res, engine, say } = slowCaller();
    for (let n = 1; n <= 2000; n += 1) {
      say();
      expect(engine).toMatchObject({ paused: n, resumed: n - 1 });
      vi.advanceTimersByTime(1000);
      res.emit('drain');
    }
    expect(engine.resumed).toBe(2000);
    expect(['drain', 'close'].map((event) => res.listenerCount(event))).toEqual([0, 0]);
    vi.advanceTimersByTime(1_000_000);
    expect(res.destroyed).toBe(false);
  });

  it('is given up when it takes nothing for two minutes, so that the slot is free', () => {
    const { res, say } = slowCaller();
    say();
    vi.advanceTimersByTime(119_000);
    expect(res.destroyed).toBe(false);
    vi.advanceTimersByTime(1_000);
    expect(res.destroyed).toBe(true);
  });
});
