import { describe, expect, it } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { apiId, RAM, residentId } from '#domain/ids.js';
import { MemoryLog } from '../testing/memory-log.js';
import { SAMPLES } from '../testing/samples.js';
import { Story } from '../testing/story.js';
import type { FoldFor } from './folds-agree.js';
import { checkEvents, checkInvariants, type InvariantOptions } from './invariants.js';

const check = (story: Story, options: Partial<InvariantOptions> = {}) =>
  checkEvents(story.events, { atRest: true, form: false, ...options });

/** One violation, of this invariant, that says this. */
const expectOne = (
  story: Story,
  invariant: number,
  message: RegExp,
  options: Partial<InvariantOptions> = {},
) => {
  const violations = check(story, options);
  expect(violations.map((v) => [v.invariant, v.message])).toEqual([
    [invariant, expect.stringMatching(message)],
  ]);
};

/** A on a machine of 1000 bytes, then B in its place, with calls on both. */
const evictToFit = () =>
  new Story()
    .machine(1000)
    .callStarted('a1')
    .loaded('a', 700, 1000)
    .callFinished('a1', { residentId: residentId('a') })
    .callStarted('b1')
    .decided('b', 600, 300, [{ name: 'a', bytes: 700 }])
    .evictionStarted('a', 'b')
    .evicted('a', 'b')
    .started('b')
    .ready('b', 600)
    .callFinished('b1', { residentId: residentId('b') });

describe('a sound log', () => {
  it('has no violation', () => {
    expect(check(evictToFit())).toEqual([]);
    expect(check(new Story())).toEqual([]);
  });

  it('may have much under way while it is not at rest', () => {
    const story = evictToFit()
      .callStarted('a2')
      .decided('a', 700, 400, [{ name: 'b', bytes: 600 }], { residentId: residentId('a2') })
      .evictionStarted('b', 'a');
    expect(check(story, { atRest: false })).toEqual([]);
    expect(new Set(check(story).map((v) => v.invariant))).toEqual(new Set([1, 3, 5]));
  });

  it('may hold one event twice under one id', () => {
    const story = evictToFit();
    const again = story.events.find((e) => e.event.type === 'ResidentEvicted');
    if (!again) throw new Error('the story has an eviction');
    story.worker(again.event);
    const copy = story.events.pop();
    if (copy) story.events.push({ ...copy, id: again.id });
    expect(check(story)).toEqual([]);
  });

  it('is read from the log itself', async () => {
    const log = new MemoryLog();
    log.all.push(...evictToFit().events);
    expect(await checkInvariants(log, { atRest: true, form: false })).toEqual([]);
    log.all.push(
      ...new Story().callStarted('open').events.map((e) => ({
        ...e,
        position: { commit: 10_000n, prepare: 10_000n },
        revision: 50,
        id: 'open',
      })),
    );
    expect(await checkInvariants(log, { atRest: true, form: false })).toHaveLength(1);
    // Its short names are no ids.
    const form = (await checkInvariants(log, { atRest: true })).filter((v) => v.invariant === 'form');
    expect(form.map((v) => v.message)).toContain('The id of WorkerRegistered, "event-0", is no UUID.');
  });

  it('is not called sound when its reading ends before its end', async () => {
    // What was read is in order, and what is wrong comes after it.
    const log = new MemoryLog();
    log.all.push(...new Story().machine(1000).events);
    const ends = { stop: () => Promise.resolve(), ended: Promise.resolve() };
    log.subscribeAll = (_, reader) => {
      for (const recorded of log.all) void reader.onEvent(recorded);
      return ends;
    };
    await expect(checkInvariants(log, { atRest: true, form: false })).rejects.toThrow(
      'The reading of the whole log was stopped before its end.',
    );
    log.subscribeAll = () => ({ ...ends, ended: Promise.reject(new Error('Another log answers.')) });
    await expect(checkInvariants(log, { atRest: true, form: false })).rejects.toThrow('Another log answers.');
  });
});

describe('invariant 1, the lives of residents', () => {
  const base = () => new Story().machine(1000).loaded('a', 700, 1000);
  it('finds a second start', () => expectOne(base().started('a'), 1, /a is started a second time/));
  it('finds a second outcome', () =>
    expectOne(base().ready('a', 700), 1, /ResidentReady after ResidentReady/));
  it('finds a second end', () =>
    expectOne(
      base()
        .evictionStarted('a')
        .evicted('a')
        .worker({ type: 'ResidentFoundGone', data: { residentId: residentId('a'), pid: 1 } }),
      1,
      /ends a second time \(ResidentFoundGone after ResidentEvicted\)/,
    ));
  it('finds readiness without a start', () =>
    expectOne(new Story().machine(1000).decided('a', 1, 1000).ready('a', 1), 1, /no load was started/));
  it('finds the end of one that was never ready, unless it was found gone', () => {
    const loading = () => new Story().machine(1000).decided('a', 700, 1000).started('a');
    expectOne(
      loading().worker({
        type: 'ResidentCrashed',
        data: { ...SAMPLES.ResidentCrashed, residentId: residentId('a') },
      }),
      1,
      /never ready/,
    );
    expect(
      check(loading().worker({ type: 'ResidentFoundGone', data: { residentId: residentId('a'), pid: 1 } })),
    ).toEqual([]);
  });
  it('finds a process started again for a load that is over, or was never begun, and none before it is ready', () => {
    const restarted = {
      type: 'LoadRestarted',
      data: { ...SAMPLES.LoadRestarted, residentId: residentId('a') },
    } as const;
    const decided = () => new Story().machine(1000).decided('a', 700, 1000);
    expectOne(base().worker(restarted), 1, /started again after its ResidentReady/);
    expectOne(decided().worker(restarted).started('a').ready('a', 700), 1, /though no load was started/);
    expect(check(decided().started('a').worker(restarted).ready('a', 700))).toEqual([]);
  });
  it('lets a load fail before an engine was started', () =>
    expect(
      check(
        new Story()
          .machine(1000)
          .decided('a', 700, 1000)
          .worker({
            type: 'LoadFailed',
            data: { ...SAMPLES.LoadFailed, residentId: residentId('a') },
          }),
      ),
    ).toEqual([]));
  it('finds what is left open at rest', () => {
    expectOne(base().evictionStarted('a'), 1, /eviction of resident a is left without an end/);
    const loading = check(new Story().machine(1000).decided('a', 700, 1000).started('a'));
    expect(loading.map((v) => v.message).join()).toMatch(/left loading/);
  });
});

describe('invariant 2, decisions before acts', () => {
  it('finds a load without its decision', () => {
    const story = new Story().machine(1000).started('a').ready('a', 700);
    expectOne(story, 2, /names decision decision-a, which does not precede it/);
  });
  it('finds a load that names the decision for another resident', () => {
    const story = new Story()
      .machine(1000)
      .decided('a', 700, 1000, [], { residentId: residentId('other') })
      .started('a')
      .ready('a', 700);
    expect(check(story, { atRest: false }).map((v) => v.message)).toEqual([
      expect.stringMatching(/is about resident other/),
    ]);
  });
  it('finds an eviction without its decision, but an operator needs none', () => {
    const base = () => new Story().machine(1000).loaded('a', 700, 1000);
    expectOne(base().evictionStarted('a', 'b').evicted('a', 'b'), 2, /decision-b, which does not precede/);
    const unnamed = base()
      .worker({ type: 'EvictionStarted', data: { residentId: residentId('a'), reason: 'idle' } })
      .evicted('a');
    expectOne(unnamed, 2, /\(idle\) names no decision/);
    expect(check(base().evictionStarted('a').evicted('a'))).toEqual([]);
  });
});

describe('invariant 3, charges within limits', () => {
  it('finds two residents that do not fit together', () => {
    const story = new Story().machine(1000).loaded('a', 700, 1000).loaded('b', 600, 1000);
    expectOne(story, 3, /1300 bytes\) are charged on ram, and its limit is .*1000 bytes/);
  });
  it('counts what was measured, not what was planned, once a resident is ready', () => {
    const story = new Story().machine(1000).decided('a', 100, 1000).started('a').ready('a', 700);
    expectOne(story.loaded('b', 600, 1000), 3, /1300 bytes/);
  });
  it('counts a plan from its decision on, and lets its victims go', () => {
    const planned = new Story().machine(1000).decided('a', 700, 1000).decided('b', 600, 1000);
    expect(check(planned, { atRest: false }).map((v) => v.message)).toEqual([
      expect.stringMatching(/1300 bytes/),
    ]);
    expect(check(evictToFit())).toEqual([]);
  });
  it('holds to a limit that was set', () => {
    const story = new Story()
      .machine(1000)
      .worker({ type: 'LimitSet', data: { resource: RAM, tier: 'designation', value: 500, by: 'cli' } })
      .loaded('a', 700, 1000);
    expectOne(story, 3, /its limit is .*500 bytes/);
  });
  it('finds a plan larger than the room that it read, its victims counted', () => {
    expectOne(new Story().machine(1000).loaded('a', 700, 600), 3, /needs 700 bytes on ram; it read 600/);
  });
  it('finds a plan on a device whose room was unknown', () => {
    const story = new Story()
      .machine(1000)
      .decided('a', 700, 0, [], { room: [{ deviceId: RAM }] })
      .started('a')
      .ready('a', 700);
    expectOne(story, 3, /whose room it did not know/);
  });
  it('finds a plan on a machine that has not been measured', () => {
    const violations = check(new Story().decided('a', 700, 1000).started('a').ready('a', 700));
    expect(violations.map((v) => v.message)).toEqual([expect.stringMatching(/does not say how much/)]);
  });
  it('finds a decision without an end at rest', () => {
    expectOne(new Story().machine(1000).decided('a', 700, 1000), 3, /decision-a has no end/);
  });
});

describe('invariant 4, evictions are drains', () => {
  it('finds a call that failed on a resident while it was evicted', () => {
    const failing = (over: object) =>
      new Story()
        .machine(1000)
        .loaded('a', 700, 1000)
        .callStarted('c')
        .evictionStarted('a')
        .callFinished('c', {
          outcome: 'failed',
          status: 502,
          code: 'engine_failed',
          residentId: residentId('a'),
          ...over,
        })
        .evicted('a');
    expectOne(failing({}), 4, /Call c failed on resident a while it was being evicted/);
    expect(check(failing({ status: 400, code: 'context_length_exceeded' }))).toEqual([]);
    expect(check(failing({ residentId: residentId('other') }))).toEqual([]);
    expect(check(failing({ outcome: 'abandoned' }))).toEqual([]);
  });
  it('knows that a call which failed before the eviction did not fail because of it', () => {
    const story = new Story()
      .machine(1000)
      .loaded('a', 700, 1000)
      .callStarted('c')
      .callFinished('c', { outcome: 'failed', status: 502, residentId: residentId('a') })
      .evictionStarted('a')
      .evicted('a');
    expect(check(story)).toEqual([]);
  });
  it('finds a resident that was stopped without a drain', () => {
    expectOne(
      new Story().machine(1000).loaded('a', 700, 1000).evicted('a'),
      4,
      /its eviction was never started/,
    );
  });
});

describe('invariant 5, calls', () => {
  it('finds a call without an end', () => expectOne(new Story().callStarted('c'), 5, /Call c has no end/));
  it('finds a second end and a second start', () => {
    expectOne(new Story().callStarted('c').callFinished('c').callFinished('c'), 5, /ends a second time/);
    expectOne(new Story().callStarted('c').callStarted('c').callFinished('c'), 5, /started a second time/);
  });
  it('finds an end without a start', () =>
    expectOne(new Story().callFinished('c'), 5, /ends and was never started/));
  it('lets another api abandon the calls of a lost one, and only those', () => {
    const byAnother = (outcome: 'abandoned' | 'completed') =>
      new Story().callStarted('c').callFinished('c', { outcome }, 'other');
    const lost = (story: Story) =>
      story.add('fleet-apis', {
        type: 'ApiLost',
        data: { apiId: apiId('api'), foundBy: apiId('other'), reason: 'gone' },
      });
    expect(check(lost(byAnother('abandoned')))).toEqual([]);
    expectOne(byAnother('abandoned'), 5, /its api api was not lost/);
    expectOne(lost(byAnother('completed')), 5, /only abandoned may be/);
  });
});

describe('invariant 6, folds', () => {
  const fold =
    (take: (state: { n: number }, r: Recorded<BerthEvent>) => { n: number }): FoldFor =>
    () =>
    () => {
      let state = { n: 0 };
      return {
        take: (r) => (state = take(state, r)),
        state: () => state,
        restore: (from) => (state = from as { n: number }),
      };
    };
  const story = () => new Story().callStarted('a').callStarted('b').callFinished('a').callFinished('b');

  it('finds a fold that counts an event each time that it is handed over', () => {
    const counting = fold((s) => ({ n: s.n + 1 }));
    expectOne(story(), 6, /from snapshots gives another state/, { folds: counting });
  });
  it('finds a fold that changes states that it has handed out', () => {
    const changing = fold((s, r) => {
      s.n = r.revision;
      return s;
    });
    const messages = check(story(), { folds: changing }).map((v) => v.message);
    expect(new Set(messages)).toEqual(
      new Set(['A state that was folded before has been changed by a later event.']),
    );
  });
  it('finds a fold that depends on more than the log', () => {
    let calls = 0;
    const impure = fold((_s, r) => ({ n: r.revision + (++calls % 7) }));
    expect(check(story(), { folds: impure }).map((v) => v.message)).toContain(
      'Folding the stream twice gives two different states.',
    );
  });
  it('finds events out of order', () => {
    const events = story().events;
    const [first, second, ...rest] = events;
    if (!first || !second) throw new Error('the story has events');
    const messages = checkEvents([second, first, ...rest], { atRest: false, form: false }).map(
      (v) => v.message,
    );
    expect(messages.filter((m) => m.includes('no order'))).toHaveLength(2);
  });
});
