import { describe, expect, it } from 'vitest';
import type { Ticket } from './contract.js';
import { passQueue, type Turn } from './pass.js';
import { NOW_MS, ticket } from './testing/factories.js';

const waited = (key: string, seconds: number, background = false): Ticket =>
  ticket(key, { arrivedAtMs: NOW_MS - seconds * 1000, background });

/** What each call was told, by model; those in `free` get a slot, the others find no room. */
function turns(order: readonly Ticket[], free: readonly string[] = []): readonly string[] {
  const told: string[] = [];
  passQueue<Ticket>(
    order,
    {
      ticketOf: (call) => call,
      settingsOf: () => ({ overdueAfterSeconds: 60 }),
      grant: (call) => free.includes(call.modelKey),
      look: (call, turn: Turn<Ticket>, place) => {
        told.push(`${place} ${call.modelKey} ${turn.kind}`);
        return 'waits';
      },
    },
    NOW_MS,
  );
  return told;
}

describe('a pass over the queue', () => {
  it('decides on every call that got no slot, in order', () => {
    expect(turns([waited('a', 1), waited('b', 1), waited('c', 1)], ['b'])).toEqual([
      '1 a decide',
      '2 c decide',
    ]);
  });

  it('places nothing past an overdue call that finds no room', () => {
    expect(turns([waited('a', 60), waited('b', 59)])).toEqual(['1 a decide', '2 b behind']);
    expect(turns([waited('a', 59), waited('b', 59)])).toEqual(['1 a decide', '2 b decide']);
  });

  it('keeps background behind every foreground call that waits, slot or no slot', () => {
    const order = [waited('a', 1), waited('b', 1, true)];
    expect(turns(order, ['b'])).toEqual(['1 a decide', '2 b background']);
    expect(turns(order, ['a', 'b'])).toEqual([]);
    expect(turns(order, ['a'])).toEqual(['1 b decide']);
  });

  it('ends when the queue is another', () => {
    let looked = 0;
    passQueue<Ticket>(
      [waited('a', 1), waited('b', 1)],
      {
        ticketOf: (call) => call,
        settingsOf: () => ({ overdueAfterSeconds: 60 }),
        grant: () => false,
        look: () => {
          looked += 1;
          return 'stop';
        },
      },
      NOW_MS,
    );
    expect(looked).toBe(1);
  });
});
