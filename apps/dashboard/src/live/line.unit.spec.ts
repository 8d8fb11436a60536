import { describe, expect, it } from 'vitest';
import type { LiveFrame } from '#domain/wire/index.js';
import { Line, type LineStatus, type Socket } from './line.js';

/** A server, a clock and a page, in hand. */
function stand() {
  const sockets: (Socket & { sent: string[]; closed: boolean })[] = [];
  const timers: { at: number; run: () => void; done: boolean }[] = [];
  const statuses: LineStatus[] = [];
  const frames: LiveFrame[] = [];
  let now = 0;
  let since: string | undefined;
  const line = new Line({
    topics: ['residents'],
    open: () => {
      const socket = {
        sent: [] as string[],
        closed: false,
        onopen: null as Socket['onopen'],
        onmessage: null as Socket['onmessage'],
        onclose: null as Socket['onclose'],
        send: (text: string) => socket.sent.push(text),
        close: () => (socket.closed = true),
      };
      sockets.push(socket);
      return socket;
    },
    onFrame: (frame) => {
      frames.push(frame);
      if ('position' in frame) since = frame.position;
    },
    onStatus: (status) => statuses.push(status),
    since: () => since,
    clock: {
      now: () => now,
      after: (ms, run) => {
        const timer = { at: now + ms, run, done: false };
        timers.push(timer);
        return () => (timer.done = true);
      },
    },
  });
  const pass = (ms: number) => {
    now += ms;
    for (const timer of timers.filter((t) => !t.done && t.at <= now)) {
      timer.done = true;
      timer.run();
    }
  };
  const last = () => sockets.at(-1)!;
  const says = (frame: LiveFrame) => last().onmessage?.({ data: JSON.stringify(frame) });
  const beat = (position: string): LiveFrame => ({ type: 'beat', position, at: 'now' });
  return { line, sockets, statuses, frames, pass, last, says, beat };
}
const breaks = (socket: Socket) => socket.onclose?.({ code: 1006, reason: '' });

describe('the line to /live', () => {
  it('asks for its topics, and is live with the first frame', () => {
    const { line, last, says, statuses, beat, frames } = stand();
    line.start();
    last().onopen?.();
    expect(last().sent).toEqual(['{"subscribe":["residents"]}']);
    says(beat('7'));
    expect(statuses.map(({ kind }) => kind)).toEqual(['connecting', 'live']);
    expect(frames).toHaveLength(1);
  });

  it('comes back where it was, later each time, and at once when asked to', () => {
    const { line, last, says, beat, pass, sockets, statuses } = stand();
    line.start();
    last().onopen?.();
    says(beat('7'));
    breaks(last());
    expect(statuses.at(-1)).toEqual({ kind: 'lost', sinceMs: 0, retryAtMs: 500 });
    pass(500);
    expect(sockets).toHaveLength(2);
    breaks(last());
    expect(statuses.at(-1)).toEqual({ kind: 'lost', sinceMs: 0, retryAtMs: 1500 });
    line.retry();
    expect(sockets).toHaveLength(3);
    last().onopen?.();
    expect(last().sent).toEqual(['{"subscribe":["residents"],"since":"7"}']);
    says(beat('9'));
    breaks(last());
    expect(statuses.at(-1)).toMatchObject({ retryAtMs: 1000 });
  });

  it('takes silence for the end of a line', () => {
    const { line, last, says, beat, pass, statuses, sockets } = stand();
    line.start();
    says(beat('1'));
    pass(20_000);
    says(beat('2'));
    pass(20_000);
    expect(statuses.at(-1)).toEqual({ kind: 'live' });
    pass(5000);
    expect(statuses.at(-1)?.kind).toBe('lost');
    expect(sockets[0]!.closed).toBe(true);
    pass(500);
    expect(last()).not.toBe(sockets[0]);
  });

  it('subscribes again on the same socket when it has lagged', () => {
    const { line, last, says, sockets } = stand();
    line.start();
    says({ type: 'lagged', position: '40' });
    expect(sockets).toHaveLength(1);
    expect(last().sent).toEqual(['{"subscribe":["residents"],"since":"40"}']);
  });

  it('says what the server said when it cannot be told anything, and tries again', () => {
    const { line, says, statuses, pass, sockets } = stand();
    line.start();
    says({ type: 'error', code: 'invalid_request', message: 'The log cannot be read.' });
    expect(statuses.at(-1)).toMatchObject({ kind: 'lost', why: 'The log cannot be read.' });
    pass(500);
    expect(sockets).toHaveLength(2);
  });

  it('stays away once it was stopped', () => {
    const { line, last, pass, sockets } = stand();
    line.start();
    const socket = last();
    line.stop();
    breaks(socket);
    pass(60_000);
    line.retry();
    expect(sockets).toHaveLength(1);
  });
});
