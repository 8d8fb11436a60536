import { afterEach, expect, test } from 'vitest';
import { FORWARDS, START, streamNameFilter } from '@eventstore/db-client';
import { collect, event, eventually, startTestNode, type TestNode } from './testing/node-fixture.js';

let running: TestNode | undefined;
afterEach(async () => {
  await running?.stop();
  running = undefined;
});

for (const insecure of [true, false]) {
  const over = insecure ? 'plain' : 'TLS';
  test(`an event appended over ${over} is read, subscribed to and found by a filter`, async () => {
    running = await startTestNode({ insecure });
    const { client } = running;
    const seen: string[] = [];
    const subscription = client.subscribeToAll({
      fromPosition: START,
      filter: streamNameFilter({ prefixes: ['order-'] }),
    });
    subscription.on('data', (resolved) => seen.push(`${resolved.event?.streamId}:${resolved.event?.type}`));
    subscription.on('error', (error) => seen.push(String(error)));
    const first = await client.appendToStream('order-1', event('Placed', { total: 3 }), {
      expectedRevision: 'no_stream',
    });
    expect(first).toMatchObject({ success: true, nextExpectedRevision: 0n });
    await client.appendToStream('other-1', event('Noise'));
    await client.appendToStream('order-1', [event('Paid'), event('Sent')], { expectedRevision: 0n });
    const events = await collect(client.readStream('order-1', { direction: FORWARDS, fromRevision: START }));
    expect(events.map((e) => [e.event?.type, e.event?.revision, e.event?.data])).toEqual([
      ['Placed', 0n, { total: 3 }],
      ['Paid', 1n, {}],
      ['Sent', 2n, {}],
    ]);
    expect(events[0]?.event?.position).toEqual(first.position);
    expect(Math.abs(Date.now() - (events[0]?.event?.created.getTime() ?? 0))).toBeLessThan(60_000);
    await eventually(() => seen.length >= 3, 'the subscription has seen three events');
    expect(seen).toEqual(['order-1:Placed', 'order-1:Paid', 'order-1:Sent']);
    await subscription.unsubscribe();
    await expect(
      client.appendToStream('order-1', event('Late'), { expectedRevision: 0n }),
    ).rejects.toMatchObject({ type: 'wrong-expected-version', actualVersion: 2n });
  });
}
