import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apiId, type ApiId } from '../ids.js';
import { type SlotShare, SlotShares } from './slot-shares.js';

const RESIDENT = '0190a0a0-0000-7000-8000-000000000001';
const api = (n: number): ApiId => apiId(`0190a0a0-0000-7000-8000-0000000000a${n}`);

/** An api as the agent's rules need it, with what is on its way to it and from it. */
class Caller {
  slots = 0;
  wanted = false;
  number = 0;
  inFlight = 0;
  waiting = 0;
  readonly heard: SlotShare[] = [];
  readonly said: object[] = [];

  say(of: number): void {
    this.said.push({
      residentId: RESIDENT,
      holds: this.slots,
      waiting: this.waiting,
      of,
      number: this.number,
    });
  }

  hear(of: number): void {
    const share = this.heard.shift();
    if (!share) return;
    this.slots = share.slots;
    this.number = share.number;
    this.wanted = share.wanted;
    const used = this.inFlight + this.waiting;
    if (this.wanted && used < this.slots) {
      this.slots = used;
      this.say(of);
    }
    this.start();
  }

  start(): void {
    while (this.waiting > 0 && this.inFlight < this.slots) {
      this.waiting -= 1;
      this.inFlight += 1;
    }
  }

  come(of: number): void {
    this.waiting += 1;
    this.start();
    if (this.waiting > 0) this.say(of);
  }

  end(of: number): void {
    if (this.inFlight === 0) return;
    this.inFlight -= 1;
    if (this.wanted) {
      this.slots = Math.max(this.inFlight, this.slots - 1);
      this.say(of);
    } else this.start();
  }
}

describe('the slots of an engine, shared out among apis', () => {
  it('go to who calls, all of them to one that is alone with it, and back when another waits', () => {
    const heard: [ApiId, SlotShare][] = [];
    const shares = new SlotShares((to, share) => heard.push([to, share]));
    const use = (holds: number, waiting: number, number: number) => ({
      residentId: RESIDENT,
      holds,
      waiting,
      of: 4,
      number,
    });
    shares.said(api(1), use(0, 1, 0));
    expect(heard.splice(0)).toEqual([[api(1), { residentId: RESIDENT, slots: 4, number: 1, wanted: false }]]);
    shares.said(api(2), use(0, 2, 0));
    expect(heard.splice(0)).toEqual([[api(1), { residentId: RESIDENT, slots: 4, number: 2, wanted: true }]]);
    // What it says before it has heard of that gives nothing back.
    shares.said(api(1), use(1, 0, 1));
    expect(heard.splice(0)).toEqual([]);
    shares.said(api(1), use(1, 0, 2));
    expect(heard.splice(0)).toEqual([
      [api(1), { residentId: RESIDENT, slots: 2, number: 3, wanted: false }],
      [api(2), { residentId: RESIDENT, slots: 2, number: 1, wanted: false }],
    ]);
    shares.left(api(2));
    expect(heard.at(-1)).toEqual([api(1), { residentId: RESIDENT, slots: 4, number: 4, wanted: false }]);
  });

  it('are never used twice, and every call gets one in the end, whatever order things happen in', () => {
    const step = fc.tuple(fc.constantFrom('come', 'end', 'hear', 'deliver'), fc.nat({ max: 3 }));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 120 }), (of, steps) => {
        const callers = Array.from({ length: 4 }, () => new Caller());
        const shares = new SlotShares((to, share) => callers[Number(String(to).at(-1))]?.heard.push(share));
        const deliver = (n: number) => {
          const said = callers[n]?.said.shift();
          if (said) shares.said(api(n), said as Parameters<SlotShares['said']>[1]);
        };
        const sound = () => {
          const used = callers.reduce((sum, { inFlight }) => sum + inFlight, 0);
          expect(used).toBeLessThanOrEqual(of);
        };
        for (const [what, n] of steps) {
          const caller = callers[n]!;
          if (what === 'come') caller.come(of);
          else if (what === 'end') caller.end(of);
          else if (what === 'hear') caller.hear(of);
          else deliver(n);
          sound();
        }
        // Everything arrives, and every call ends: nobody is left waiting.
        for (let round = 0; round < 2000 && callers.some(({ waiting }) => waiting > 0); round += 1) {
          callers.forEach((caller, n) => {
            while (caller.said.length > 0) deliver(n);
            while (caller.heard.length > 0) caller.hear(of);
            sound();
            caller.end(of);
          });
        }
        expect(callers.map(({ waiting }) => waiting)).toEqual([0, 0, 0, 0]);
      }),
    );
  });
});
