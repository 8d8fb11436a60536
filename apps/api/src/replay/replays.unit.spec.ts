import { describe, expect, it } from 'vitest';
import { BerthFailure } from '#domain/errors.js';
import type { ReplayListener } from './replay-process.js';
import { Replays } from './replays.js';

/** Replays whose process is played by the test. */
class Stage {
  listener: ReplayListener | undefined;
  stopped = 0;
  nowMs = Date.UTC(2026, 0, 5);
  readonly replays = new Replays({
    start: (_mode, listener) => {
      this.listener = listener;
      return { stop: () => (this.stopped += 1) };
    },
    now: () => this.nowMs,
  });
}

describe('the replays of an api', () => {
  it('say why one failed, and then take the next', () => {
    const stage = new Stage();
    const first = stage.replays.start('verify');
    expect(() => stage.replays.start('verify')).toThrow(BerthFailure);
    stage.listener?.onLine({ step: 'fold', events: 0, share: 0, perSecond: 0 });
    stage.nowMs += 1000;
    stage.listener?.onEnd('Postgres is out of reach.');
    expect(stage.replays.of(first.id)).toEqual({
      id: first.id,
      mode: 'verify',
      state: 'failed',
      startedAt: '2026-01-05T00:00:00.000Z',
      endedAt: '2026-01-05T00:00:01.000Z',
      progress: { events: 0, share: 0, perSecond: 0 },
      differencesFound: 0,
      differences: [],
      error: 'Postgres is out of reach.',
    });
    expect(stage.replays.start('rebuild')).toMatchObject({ mode: 'rebuild', state: 'running' });
  });

  it('end once: what is said of an end that was told changes nothing', () => {
    const stage = new Stage();
    const { id } = stage.replays.start('rebuild');
    stage.listener?.onLine({ replayed: { events: 12, setAside: 1, position: '99' } });
    stage.listener?.onEnd(undefined);
    stage.listener?.onEnd('It was stopped before it was done.');
    expect(stage.replays.of(id)).toMatchObject({
      state: 'done',
      setAside: 1,
      position: '99',
      progress: { events: 12, share: 1 },
    });
  });

  it('keep the last eight, and stop the one that runs with the api', () => {
    const stage = new Stage();
    const first = stage.replays.start('verify');
    for (let n = 0; n < 8; n += 1) {
      stage.listener?.onEnd(undefined);
      stage.replays.start('verify');
    }
    expect(stage.replays.list).toHaveLength(8);
    expect(stage.replays.of(first.id)).toBeUndefined();
    stage.replays.stop();
    expect(stage.stopped).toBe(1);
  });
});
