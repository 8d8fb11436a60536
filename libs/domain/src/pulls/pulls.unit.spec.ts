import { describe, expect, it } from 'vitest';
import type { PullEvent } from '../events/other-events.js';
import { workerId } from '../ids.js';
import { LogOf } from '../testing/given.js';
import { evolvePulls, initialPulls } from './pulls.js';

const requested: PullEvent = { type: 'PullRequested', data: { pullId: 'p', source: 'o/m:q4', by: 'cli' } };
const file = (name: string, bytes: number): PullEvent => ({
  type: 'FilePulled',
  data: { pullId: 'p', file: name, bytes, seconds: 2, resumedFromBytes: 0 },
});
const fold = (...events: PullEvent[]) => {
  const log = new LogOf<PullEvent>('pull-w1');
  for (const event of events) log.add(event);
  return log.recorded.reduce(evolvePulls, initialPulls(workerId('w1'))).pulls.get('p');
};

describe('pulls', () => {
  it('collect their files and end once', () => {
    const pull = fold(requested, file('a', 1), file('b', 2), { type: 'PullFinished', data: { pullId: 'p' } });
    expect(pull).toMatchObject({ source: 'o/m:q4', state: 'finished', endedAt: '1970-01-01T00:03:00.000Z' });
    expect(pull?.files.map((f) => f.file)).toEqual(['a', 'b']);
  });

  it('say why they were refused or failed, and nothing that comes later changes it', () => {
    const failed = fold(
      requested,
      { type: 'PullFailed', data: { pullId: 'p', reason: 'disk full' } },
      file('late', 3),
      { type: 'PullFinished', data: { pullId: 'p' } },
    );
    expect(failed).toMatchObject({ state: 'failed', reason: 'disk full', files: [] });
  });

  it('count a file that was pulled again once, with its last figures', () => {
    expect(fold(requested, file('a', 1), file('a', 9))?.files).toEqual([
      { file: 'a', bytes: 9, seconds: 2, resumedFromBytes: 0 },
    ]);
  });
});
