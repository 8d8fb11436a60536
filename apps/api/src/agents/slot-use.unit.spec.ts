import { describe, expect, it } from 'vitest';
import { apiId, type ApiId, modelKey, residentId, workerId } from '#domain/ids.js';
import { SlotShares } from '#domain/worker/slot-shares.js';
import type { Resident } from '#domain/worker/state.js';
import type { FromApi } from './messages.js';
import type { SessionListener } from './sessions.js';
import { SlotUse } from './slot-use.js';

const WORKER = workerId('0190a0a0-0000-7000-8000-000000000001');
const SLOTS = 4;
const resident = {
  residentId: residentId('0190a0a0-0000-7000-8000-000000000002'),
  modelKey: modelKey('chat-a'),
  contract: { slots: SLOTS },
} as unknown as Resident;
const settled = async () => {
  for (let n = 0; n < 4; n += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** One api: calls that it has on the resident, those that wait, and its line to the agent. */
class Caller {
  inFlight = 0;
  waiting = 0;
  listener: SessionListener | undefined;
  readonly use: SlotUse;

  constructor(say: (slots: NonNullable<FromApi['slots']>) => void) {
    this.use = new SlotUse({
      sessions: { listen: (listener) => void (this.listener = listener), saySlots: (_, slots) => say(slots) },
      fleet: { worker: () => ({ residents: new Map([[resident.residentId, resident]]) }) as never },
      activity: { inFlight: () => this.inFlight },
      waitingFor: () => this.waiting,
      onShare: () => this.start(),
    });
  }

  get allowed(): number {
    return this.use.allowed(WORKER, resident);
  }

  start(): void {
    while (this.waiting > 0 && this.inFlight < this.allowed) {
      this.waiting -= 1;
      this.inFlight += 1;
    }
  }

  come(calls: number): void {
    this.waiting += calls;
    this.start();
    if (this.waiting > 0) this.use.ask(WORKER, resident);
  }

  end(): void {
    this.inFlight -= 1;
    this.use.ended(resident.residentId);
    this.start();
  }
}

function twoApis() {
  const ids: ApiId[] = [1, 2].map((n) => apiId(`0190a0a0-0000-7000-8000-0000000000a${n}`));
  const callers: Caller[] = [];
  const shares: SlotShares = new SlotShares((to, share) =>
    callers[ids.indexOf(to)]?.listener?.onShare?.(WORKER, share),
  );
  const [a, b] = ids.map((id) => new Caller((slots) => shares.said(id, slots))) as [Caller, Caller];
  callers.push(a, b);
  const neighbours = (apis: number) =>
    callers.forEach(({ listener }) => listener?.onNeighbours?.(WORKER, apis));
  return { a, b, neighbours };
}

describe('the slots that an api may use', () => {
  it('are all of them while it is alone with a worker, and nothing is said', () => {
    let said = 0;
    const caller = new Caller(() => (said += 1));
    caller.listener?.onNeighbours?.(WORKER, 1);
    caller.come(6);
    expect([caller.inFlight, caller.waiting, said]).toEqual([4, 2, 0]);
  });

  it('are shared with another api: together they never use more, and each gets its turn', async () => {
    const { a, b, neighbours } = twoApis();
    a.come(3);
    neighbours(2);
    await settled();
    expect([a.allowed, b.allowed]).toEqual([4, 0]);
    b.come(3);
    await settled();
    // The one slot that was not in use is given back at once.
    expect([a.inFlight, b.inFlight, b.waiting]).toEqual([3, 1, 2]);
    a.come(2);
    for (let n = 0; n < 2; n += 1) {
      a.end();
      await settled();
      expect(a.inFlight + b.inFlight).toBe(SLOTS);
    }
    // Who holds less was given first, though the other had calls that waited too.
    expect([a.inFlight, b.inFlight]).toEqual([2, 2]);
  });

  it('are all of them again when the other has left, or the agent cannot be reached', async () => {
    const { a, b, neighbours } = twoApis();
    neighbours(2);
    a.come(1);
    b.come(1);
    await settled();
    expect(a.allowed + b.allowed).toBe(SLOTS);
    a.listener?.onDisconnected?.(WORKER);
    expect(a.allowed).toBe(SLOTS);
    neighbours(1);
    expect(b.allowed).toBe(SLOTS);
  });
});
