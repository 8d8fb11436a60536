import { describe, expect, it } from 'vitest';
import { residentId, workerId } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { Story } from '#events/testing/story.js';
import { LiveFold } from './live-fold.js';

describe('what is told live', () => {
  const given = (...residents: readonly string[]) => {
    const story = new Story().machine(1000 * MIB);
    for (const name of residents) story.loaded(name, 10 * MIB, 900 * MIB);
    const fold = new LiveFold({ workers: [], catalogs: [] });
    let applied = 0;
    const apply = () => {
      const fresh = story.events.slice(applied);
      applied = story.events.length;
      return fresh.flatMap((event) => fold.apply(event));
    };
    /** @returns when it came. */
    const call = (n: number, resident: string) => {
      story.callFinished(`call-${n}`, { workerId: workerId('w'), residentId: residentId(resident) });
      return story.at(-2);
    };
    const lastCalls = () => fold.items('residents').map((r) => [r.residentId, r.lastCallAt]);
    return { story, fold, apply, call, lastCalls };
  };

  it('names the last call of a resident however many calls came to others since', () => {
    const { fold, apply, call, lastCalls } = given('a', 'b');
    const came = call(0, 'a');
    const others = Array.from({ length: 300 }, (_, n) => call(n + 1, 'b'));
    apply();
    expect(fold.items('calls').some((item) => item.residentId === 'a')).toBe(false);
    expect(lastCalls()).toEqual([
      ['a', came],
      ['b', others.at(-1)],
    ]);
  });

  it('keeps it in what is told when the resident changes, and forgets it with the resident', () => {
    const { story, apply, call, lastCalls } = given('a');
    const came = call(0, 'a');
    apply();
    story.evictionStarted('a');
    const told = apply().flatMap((c) => (c.topic === 'residents' ? [c.item.lastCallAt] : []));
    expect(told).toEqual([came]);
    story.evicted('a');
    call(1, 'a');
    apply();
    expect(lastCalls()).toEqual([]);
  });
});
