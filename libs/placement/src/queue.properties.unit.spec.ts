import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { type CallId, callId, modelKey } from '#domain/ids.js';
import type { Ticket } from './contract.js';
import { etaSeconds, type Prediction } from './predict.js';
import { ALPHA_SECONDS_PER_PLACE, isOverdue, orderQueue } from './queue.js';
import { defaultSettings } from './setting-levels.js';
import { RUNS, TIMEOUT_MS } from './testing/arbitraries.js';
import { NOW_MS } from './testing/factories.js';

interface Drawn {
  readonly tickets: readonly Ticket[];
  readonly predictions: ReadonlyMap<CallId, Prediction>;
}

const drawn = (grouped: boolean, unknown: boolean): fc.Arbitrary<Drawn> =>
  fc
    .array(
      fc.record({
        waited: fc.integer({ min: 0, max: 90 }),
        background: fc.constantFrom(false, false, true),
        group: grouped ? fc.constantFrom(undefined, 'g', 'h') : fc.constant(undefined),
        load: fc.integer({ min: 0, max: 60 }),
        output: unknown
          ? fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined })
          : fc.integer({ min: 0, max: 60 }),
      }),
      { maxLength: 12 },
    )
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
            loadSeconds: d.load,
            resident: d.load === 0,
            ...(d.output === undefined ? {} : { outputSeconds: d.output }),
          },
        ]),
      );
      return { tickets, predictions };
    });

const order = (d: Drawn, queueOrder: 'eta' | 'fifo' | 'smart' = 'eta'): readonly Ticket[] =>
  orderQueue([...d.tickets].reverse(), d.predictions, NOW_MS, { ...defaultSettings, queueOrder });
const pairs = (list: readonly Ticket[]): readonly (readonly [Ticket, Ticket])[] =>
  list.flatMap((a, i) => list.slice(i + 1).map((b) => [a, b] as const));
vi.setConfig({ testTimeout: TIMEOUT_MS });
const runs = { numRuns: RUNS };
const anyOrder = fc.constantFrom('eta' as const, 'fifo' as const, 'smart' as const);

it('every ticket is in the order once', () => {
  fc.assert(
    fc.property(drawn(true, true), anyOrder, (d, by) => {
      expect(
        order(d, by)
          .map((t) => t.callId)
          .sort(),
      ).toEqual(d.tickets.map((t) => t.callId).sort());
    }),
    runs,
  );
});

it('foreground is before background, whatever the order', () => {
  fc.assert(
    fc.property(drawn(true, true), anyOrder, (d, by) => {
      for (const [a, b] of pairs(order(d, by))) expect(a.background && !b.background).toBe(false);
    }),
    runs,
  );
});

it('groups keep their order, whatever the order', () => {
  fc.assert(
    fc.property(drawn(true, true), anyOrder, (d, by) => {
      for (const [a, b] of pairs(order(d, by))) {
        if (a.group !== undefined && a.group === b.group && a.background === b.background)
          expect(a.arrival).toBeLessThan(b.arrival);
      }
    }),
    runs,
  );
});

it('overdue tickets are first, oldest first', () => {
  fc.assert(
    fc.property(drawn(true, true), (d) => {
      for (const [a, b] of pairs(order(d))) {
        const overdue = isOverdue(b, NOW_MS, defaultSettings);
        if (overdue) expect(isOverdue(a, NOW_MS, defaultSettings) && a.arrival < b.arrival).toBe(true);
      }
    }),
    runs,
  );
});

it('nobody is overtaken by more than the bound of 0.1 s per place', () => {
  fc.assert(
    fc.property(drawn(false, false), (d) => {
      for (const [first, second] of pairs(order(d))) {
        const overtaken = first.arrival > second.arrival && first.background === second.background;
        if (!overtaken || isOverdue(first, NOW_MS, defaultSettings)) continue;
        const gain = (t: Ticket): number => etaSeconds(d.predictions.get(t.callId)!) ?? 0;
        const places = first.arrival - second.arrival;
        expect(gain(second) - gain(first)).toBeGreaterThanOrEqual(ALPHA_SECONDS_PER_PLACE * places - 1e-9);
      }
    }),
    runs,
  );
});

it('a model without history holds the place of its arrival', () => {
  fc.assert(
    fc.property(drawn(false, true), (d) => {
      const waiting = d.tickets.filter((t) => !t.background && !isOverdue(t, NOW_MS, defaultSettings));
      const placed = order(d).filter((t) => waiting.includes(t));
      waiting.forEach((t, place) => {
        if (etaSeconds(d.predictions.get(t.callId)!) === undefined) expect(placed.indexOf(t)).toBe(place);
      });
    }),
    runs,
  );
});
