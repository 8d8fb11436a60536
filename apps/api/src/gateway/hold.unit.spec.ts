import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { callId, modelKey, residentId, workerId } from '#domain/ids.js';
import type { TicketView } from '../admission/port.js';
import { Alarms } from './alarms.js';
import type { CallClient } from './client.js';
import { Hold } from './hold.js';

const LOADING: TicketView = {
  callId: callId('0190a0a0-0000-7000-8000-000000000001'),
  modelKey: modelKey('big'),
  phase: 'loading',
  place: 1,
  why: 'its model loads',
  loading: {
    residentId: residentId('0190a0a0-0000-7000-8000-000000000002'),
    workerId: workerId('0190a0a0-0000-7000-8000-000000000003'),
  },
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A caller that notes what it got, and when. */
function held({ stream, interim = true }: { stream: boolean; interim?: boolean }) {
  const said: string[] = [];
  const client = {
    left: false,
    headSent: false,
    streamHead: () => {
      client.headSent = true;
      said.push('head');
    },
    comment: (text: string) => void said.push(text),
    res: { writeProcessing: () => void said.push('102') },
  };
  let done: number | undefined;
  const hold = new Hold({
    client: client as unknown as CallClient,
    stream,
    modelName: 'big',
    receivedAtMs: Date.now(),
    now: Date.now,
    progress: () => done,
    interim,
    alarms: new Alarms(),
  });
  return { said, client, hold, progress: (fraction: number) => (done = fraction) };
}

describe('a stream that waits', () => {
  it('has its head as soon as its load is decided, and a comment every 10 s that says how far it is', () => {
    const { said, hold, progress } = held({ stream: true });
    hold.onView(LOADING);
    expect(said).toEqual(['head', 'loading big']);
    progress(0.43);
    vi.advanceTimersByTime(120_000);
    expect(said.slice(2)).toEqual(Array(12).fill('loading big 43%'));
  });

  it('has its head after 10 s, with its place, when nothing was decided until then', () => {
    const { said, hold } = held({ stream: true });
    hold.onView({ ...LOADING, phase: 'waiting', place: 3 });
    vi.advanceTimersByTime(9_000);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(said).toEqual(['head', 'queued big place 3']);
  });

  it('hears nothing more when its answer begins or it has left', () => {
    const { said, client, hold } = held({ stream: true });
    hold.onView(LOADING);
    client.left = true;
    vi.advanceTimersByTime(60_000);
    expect(said).toHaveLength(2);
    const other = held({ stream: true });
    other.hold.onView(LOADING);
    other.hold.stop();
    vi.advanceTimersByTime(60_000);
    expect(other.said).toHaveLength(2);
  });
});

describe('a call that is not streamed', () => {
  it('gets 102 every 60 s, so that a client that gives up after 300 s never does', () => {
    const { said, hold } = held({ stream: false });
    hold.onView(LOADING);
    vi.advanceTimersByTime(59_999);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(540_001);
    expect(said).toEqual(Array(10).fill('102'));
    hold.stop();
    vi.advanceTimersByTime(600_000);
    expect(said).toHaveLength(10);
  });

  it('gets none over HTTP/1.0, which does not know them', () => {
    const { said } = held({ stream: false, interim: false });
    vi.advanceTimersByTime(600_000);
    expect(said).toEqual([]);
  });
});
