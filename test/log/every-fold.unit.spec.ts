import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { CATEGORIES, categoryOf, streamNamed, type TypedStream } from '#events/catalogue.js';
import { stateFromText, stateToText } from '#events/snapshots/state-text.js';
import { drawEvents, recorded } from '../../apps/projector/src/testing/random-log.js';

type Events = readonly Recorded<BerthEvent>[];

/** Nothing is folded from the log's identity. */
const FOLDED = CATEGORIES.filter((category) => category !== 'log');

/** The streams of one category in a log that is drawn from a seed. */
function streamsOf(category: string, seed: number): readonly Events[] {
  const byStream = new Map<string, Recorded<BerthEvent>[]>();
  for (const one of recorded(drawEvents(seed, 400))) {
    if (categoryOf(one.stream) !== category) continue;
    byStream.set(one.stream, [...(byStream.get(one.stream) ?? []), one]);
  }
  return [...byStream.values()];
}

function known(events: Events): TypedStream<unknown, BerthEvent> {
  const stream = streamNamed(events[0]?.stream ?? '');
  if (!stream) throw new Error(`nothing is folded from ${events[0]?.stream ?? 'no event'}`);
  return stream;
}

const fold = (events: Events, from?: unknown): unknown =>
  events.reduce(known(events).fold.evolve, from ?? known(events).fold.initial());

describe.each(FOLDED)('the fold of %s', (category) => {
  /** With each stream of drawn logs, cut somewhere between its first event and its last. */
  const withLogs = (check: (events: Events, cut: number) => void) =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), fc.nat(10_000), (seed, drawn) => {
        for (const events of streamsOf(category, seed))
          if (events.length > 1) check(events, 1 + (drawn % (events.length - 1)));
      }),
      { numRuns: 15 },
    );

  it('gives from a snapshot and the events since what it gives from all of them', () => {
    let folded = 0;
    withLogs((events, cut) => {
      const snapshot = stateFromText(stateToText(fold(events.slice(0, cut))));
      expect(fold(events.slice(cut), snapshot)).toStrictEqual(fold(events));
      folded += 1;
    });
    expect(folded).toBeGreaterThan(0);
  });

  it('counts once what a retry wrote twice under one id', () => {
    withLogs((events, cut) => {
      // The writer of a batch hears no answer and writes the batch again.
      const batch = events.slice(cut, cut + 3);
      const twice = [...events.slice(0, cut), ...batch, ...batch, ...events.slice(cut + 3)].map(
        (one, revision) => ({ ...one, revision }),
      );
      const once = twice.filter((_, at) => at < cut + batch.length || at >= cut + 2 * batch.length);
      const { revision: _one, ...state } = fold(once) as { revision: number };
      const { revision: _other, ...again } = fold(twice) as { revision: number };
      expect(again).toStrictEqual(state);
    });
  });
});
