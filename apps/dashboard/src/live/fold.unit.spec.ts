import { describe, expect, it } from 'vitest';
import type { CallItem, LiveFrame, ResidentItem } from '#domain/wire/index.js';
import { fold, KEPT, type LiveState, NOTHING, sinceOf } from './fold.js';

const resident = (residentId: string, more: Partial<ResidentItem> = {}): ResidentItem => ({
  residentId,
  workerId: 'w',
  phase: 'ready',
  memory: [],
  ...more,
});
const call = (callId: string, state: CallItem['state'] = 'completed'): CallItem => ({
  callId,
  modelKey: 'm',
  receivedAt: '2026-01-01T00:00:00.000Z',
  state,
  tokens: {},
  timings: {},
  stamps: {},
});
const residents = (position: string, ...items: ResidentItem[]): LiveFrame => ({
  type: 'snapshot',
  topic: 'residents',
  position,
  items,
});
const changed = (position: string, item: ResidentItem): LiveFrame => ({
  type: 'changes',
  position,
  changes: [{ topic: 'residents', position, item }],
});
const after = (...frames: LiveFrame[]): LiveState => frames.reduce(fold, NOTHING);

describe('the fold of what /live tells', () => {
  it('takes a snapshot as the whole, and each change over what was there', () => {
    const state = after(
      residents('5', resident('a'), resident('b', { phase: 'loading' })),
      changed('6', resident('b')),
      changed('7', resident('c')),
    );
    expect([...state.topics.residents.values()].map(({ residentId, phase }) => [residentId, phase])).toEqual([
      ['a', 'ready'],
      ['b', 'ready'],
      ['c', 'ready'],
    ]);
    expect(state.position).toBe('7');
    expect(after(residents('9', resident('z')), residents('10')).topics.residents.size).toBe(0);
  });

  it('lets a resident go that has ended', () => {
    const state = after(residents('5', resident('a')), changed('6', resident('a', { phase: 'ended' })));
    expect(state.topics.residents.size).toBe(0);
  });

  it('never changes a state that it gave before', () => {
    const before = after(residents('5', resident('a')));
    const next = fold(before, changed('6', resident('b')));
    expect([before.topics.residents.size, next.topics.residents.size]).toEqual([1, 2]);
    expect(next.topics.calls).toBe(before.topics.calls);
  });

  it('keeps the newest calls and every one that still runs', () => {
    const running = call('running', 'running');
    const frames: LiveFrame[] = [{ type: 'snapshot', topic: 'calls', position: '1', items: [running] }];
    for (let n = 0; n < KEPT + 20; n++) {
      const position = String(n + 2);
      const item = call(`c${n}`);
      frames.push({ type: 'changes', position, changes: [{ topic: 'calls', position, item }] });
    }
    const { calls } = after(...frames).topics;
    expect(calls.size).toBe(KEPT);
    expect(calls.has('running')).toBe(true);
    expect(calls.has('c0')).toBe(false);
    expect(calls.has(`c${KEPT + 19}`)).toBe(true);
  });

  it('replaces what is of the moment and tells what is empty from what is not known', () => {
    expect(NOTHING.known.has('queue')).toBe(false);
    const state = after({ type: 'moment', topic: 'queue', at: 'now', items: [] });
    expect(state.known.has('queue')).toBe(true);
    expect(state.position).toBeUndefined();
  });

  it('goes on from its position only when every topic was told whole', () => {
    const topics = ['residents', 'calls', 'queue'];
    const half = after(residents('5', resident('a')));
    expect(sinceOf(half, topics)).toBeUndefined();
    const whole = fold(half, { type: 'snapshot', topic: 'calls', position: '5', items: [] });
    expect(sinceOf(whole, topics)).toBe('5');
    expect(sinceOf(fold(whole, { type: 'lagged', position: '8' }), topics)).toBe('8');
    // Snapshots began anew and the line broke after the first of them.
    expect(sinceOf(fold(whole, residents('20')), topics)).toBeUndefined();
  });
});
