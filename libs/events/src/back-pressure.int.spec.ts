import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { openEventLog } from './connect.js';
import type { EventLog } from './event-log.js';
import type * as ReadMessage from './read-message.js';
import { type EmbeddedNode, startEmbeddedNode } from './testing/embedded-node.js';
import { SAMPLES } from './testing/samples.js';
import { until } from './testing/until.js';

/** Messages that this process has taken out of its connection. */
const taken = vi.hoisted(() => ({ count: 0 }));
vi.mock('./read-message.js', async (original) => {
  const { readMessage } = await original<typeof ReadMessage>();
  return {
    readMessage: (bytes: Buffer) => {
      taken.count++;
      return readMessage(bytes);
    },
  };
});

const EVENTS = 4000;
/** What the streams between the connection and a handler may hold, and a few for what is under way between them. */
const MOST_AHEAD = 600;
const STREAM = 'worker-slow';

let node: EmbeddedNode;
let log: EventLog;
beforeAll(async () => {
  node = await startEmbeddedNode();
  log = openEventLog({ url: node.url, by: 'test', now: Date.now });
  for (let n = 0; n < EVENTS; n += 400) {
    const events = Array.from({ length: 400 }, (_, i) => ({
      id: randomUUID(),
      event: { type: 'PinSet' as const, data: { ...SAMPLES.PinSet, by: String(n + i) } },
      cause: { correlationId: 'c', causationId: 'c' },
    }));
    expect(await log.append(STREAM, events, 'any', { deadlineMs: 30_000 })).toMatchObject({ ok: true });
  }
});
afterAll(async () => {
  await log.close();
  await node.stop();
});

const by = ({ event }: Recorded<BerthEvent>): number =>
  event.type === 'PinSet' ? Number(event.data.by) : -1;
const numbers = Array.from({ length: EVENTS }, (_, n) => n);
/** Until nothing more has come for a hundred looks in a row. */
async function stands(): Promise<number> {
  let looks = 0;
  let before = -1;
  await until(() => {
    looks = taken.count === before ? looks + 1 : 0;
    before = taken.count;
    return looks >= 100;
  }, 60_000);
  return before;
}

it.each(['a stream', 'the log'])(
  'a handler that is slow holds back its subscription to %s: a bounded number of events waits for it, none is lost',
  { timeout: 180_000 },
  async (what) => {
    taken.count = 0;
    const heard: number[] = [];
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const subscriber = {
      onEvent: async (recorded: Recorded<BerthEvent>) => {
        heard.push(by(recorded));
        if (heard.length === 1) await gate;
      },
    };
    const subscription =
      what === 'a stream' ? log.subscribe(STREAM, subscriber) : log.subscribeAll([STREAM], subscriber);
    await until(() => heard.length === 1, 60_000);
    const ahead = await stands();
    expect(heard).toEqual([0]);
    expect(ahead).toBeGreaterThan(1);
    expect(ahead).toBeLessThan(MOST_AHEAD);
    open();
    await until(() => heard.length >= EVENTS, 60_000);
    expect(heard).toEqual(numbers);
    await subscription.stop();
  },
);
