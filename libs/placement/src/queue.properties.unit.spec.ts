import fc from 'fast-check';
import { describe, vi } from 'vitest';
import { type CallId, callId, modelKey } from '#domain/ids.js';
import type { Ticket } from './contract.js';
import { etaSeconds, type Prediction } from './predict.js';
import { ALPHA_SECONDS_PER_PLACE, isOverdue, orderQueue, SMART_HEAD_SECONDS } from './queue.js';
import { defaultSettings } from './setting-levels.js';
import { RUNS, TIMEOUT_MS } from './testing/arbitraries.js';
import { explore, must } from './testing/explored.js';
import { NOW_MS } from './testing/factories.js';

interface Drawn {
  readonly tickets: readonly Ticket[];
  readonly predictions: ReadonlyMap<CallId, Prediction>;
}

const some = fc.integer({ min: 0, max: 60 });

const waiting = (longest: number, grouped: boolean, unknown: boolean) =>
  fc.array(
    fc.record({
      waited: fc.integer({ min: 0, max: longest }),
      background: fc.constantFrom(false, false, true),
      group: grouped ? fc.constantFrom(undefined, 'g', 'h') : fc.constant(undefined),
      // Without a load its model is resident.
      load: fc.oneof(fc.constant(0), some, some),
      output: unknown ? fc.option(some, { nil: undefined }) : some,
    }),
    { maxLength: 12 },
  );

const drawn = (grouped: boolean, unknown: boolean): fc.Arbitrary<Drawn> =>
  // Where nobody has waited for long, calls to residents pass the head under `smart`.
  fc
    .constantFrom(SMART_HEAD_SECONDS - 1, 90)
    .chain((longest) => waiting(longest, grouped, unknown))
    .map((list) => {
      const byWait = [...list].sort((a, b) => b.waited - a.waited);
      const tickets = byWait.map((d, arrival): Ticket => ({
        callId: callId(`c${arrival}`),
        modelKey: modelKey(`m${arrival}`),
        arrivedAtMs: NOW_MS - d.waited * 1000,
        arrival,
        background: d.background,
        promptTokens: 1,
        ...(d.group === undefined ? {} : { group: d.group }),
      }));
      const predictions = new Map(
        byWait.map((d, i): [CallId, Prediction] => [
          callId(`c${i}`),
          {
            readyInSeconds: 0,
            // Tenths: what they gain on one another is about what each place costs.
            loadSeconds: d.load / 10,
            resident: d.load === 0,
            ...(d.output === undefined ? {} : { outputSeconds: d.output / 10 }),
          },
        ]),
      );
      return { tickets, predictions };
    });

type By = 'eta' | 'fifo' | 'smart';

const orderBy = (d: Drawn, queueOrder: By = 'eta'): readonly Ticket[] =>
  orderQueue([...d.tickets].reverse(), d.predictions, NOW_MS, { ...defaultSettings, queueOrder });

/** The first pair, in its order, of which something holds. */
function pairOf(
  list: readonly Ticket[],
  of: (a: Ticket, b: Ticket) => boolean,
): readonly [Ticket, Ticket] | undefined {
  for (let i = 0; i < list.length; i++)
    for (let j = i + 1; j < list.length; j++) {
      const [a, b] = [list[i], list[j]];
      if (a && b && of(a, b)) return [a, b];
    }
  return undefined;
}

function noPair(list: readonly Ticket[], of: (a: Ticket, b: Ticket) => boolean): void {
  const pair = pairOf(list, of);
  must(pair === undefined, () => `${pair?.[0].callId} stands before ${pair?.[1].callId}`);
}

const late = (t: Ticket): boolean => isOverdue(t, NOW_MS, defaultSettings);
const etaOf = (d: Drawn, t: Ticket): number | undefined => {
  const prediction = d.predictions.get(t.callId);
  return prediction && etaSeconds(prediction);
};

vi.setConfig({ testTimeout: TIMEOUT_MS });

describe('whatever waits, and in whatever order it is to be,', () => {
  explore(
    fc.tuple(drawn(true, true), fc.constantFrom<By>('eta', 'fifo', 'smart')),
    ([d, by]) => ({ d, by, order: orderBy(d, by) }),
    {
      'every ticket is in the order once': ({ d, order }) => {
        const ids = new Set(order.map((t) => t.callId));
        must(
          order.length === d.tickets.length && d.tickets.every((t) => ids.has(t.callId)),
          () => 'it is not',
        );
      },
      'foreground is before background': ({ order }) => {
        noPair(order, (a, b) => a.background && !b.background);
      },
      'groups keep their order': ({ order }) => {
        noPair(
          order,
          (a, b) =>
            a.group !== undefined &&
            a.group === b.group &&
            a.background === b.background &&
            a.arrival >= b.arrival,
        );
      },
      'overdue tickets are first, oldest first, when it is by predicted end': ({ d, by, order }) => {
        const byEnd = by === 'eta' ? order : orderBy(d);
        noPair(byEnd, (a, b) => late(b) && !(late(a) && a.arrival < b.arrival));
      },
    },
    RUNS,
  );
});

describe('without groups', () => {
  explore(
    drawn(false, false),
    (d) => ({ d, order: orderBy(d) }),
    {
      'nobody is overtaken by more than the bound of 0.1 s per place': ({ d, order }) => {
        noPair(order, (first, second) => {
          if (first.arrival <= second.arrival || first.background !== second.background || late(first))
            return false;
          const gained = (etaOf(d, second) ?? 0) - (etaOf(d, first) ?? 0);
          return gained < ALPHA_SECONDS_PER_PLACE * (first.arrival - second.arrival) - 1e-9;
        });
      },
    },
    RUNS,
  );

  explore(
    drawn(false, true),
    (d) => ({ d, order: orderBy(d) }),
    {
      'a model without history holds the place of its arrival': ({ d, order }) => {
        const waiting = d.tickets.filter((t) => !t.background && !late(t));
        const placed = order.filter((t) => waiting.includes(t));
        waiting.forEach((t, place) => {
          must(etaOf(d, t) !== undefined || placed[place] === t, () => `${t.callId} is not at ${place}`);
        });
      },
    },
    RUNS,
  );
});
