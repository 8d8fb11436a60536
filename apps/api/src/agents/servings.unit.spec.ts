import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { callId, modelKey, residentId, workerId } from '#domain/ids.js';
import { noOptions } from '#placement/model-name.js';
import { Activity } from '../admission/activity.js';
import type { Fleet } from '../fleet/fleet.js';
import type { SessionListener } from './sessions.js';
import { Servings } from './servings.js';

const WORKER = workerId('w');
const ID = residentId('r');
const call = { callId: callId('c'), promptTokens: 1, options: noOptions };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function stand() {
  const said: boolean[] = [];
  let listener: SessionListener | undefined;
  const activity = new Activity(() => 0);
  const fleet = {
    resident: () => ({ workerId: WORKER }),
    worker: () => ({ residents: new Map([[ID, {}]]) }),
  } as unknown as Pick<Fleet, 'resident' | 'worker'>;
  const servings = new Servings(activity, fleet, {
    sayServing: (_worker, _id, serves) => void said.push(serves),
    listen: (one) => void (listener = one),
  });
  const begin = () => activity.begin(ID, modelKey('m'), call);
  return { said, begin, servings, connect: () => listener?.onConnected?.(WORKER) };
}

it('says once that a resident serves, however many calls follow one another, and once that it is quiet', () => {
  const { said, begin } = stand();
  for (let n = 0; n < 50; n += 1) {
    const end = begin();
    vi.advanceTimersByTime(20);
    end();
  }
  expect(said).toEqual([true]);
  vi.advanceTimersByTime(1000);
  expect(said).toEqual([true, false]);
  begin();
  expect(said).toEqual([true, false, true]);
});

it('does not say that it is quiet while a call is on it', () => {
  const { said, begin } = stand();
  begin()();
  begin();
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual([true]);
});

it('tells an agent that comes back what serves', () => {
  const { said, begin, connect } = stand();
  begin();
  connect();
  expect(said).toEqual([true, true]);
});
