import type { WebSocket } from 'ws';
import { describe, expect, it } from 'vitest';
import { changesFrame, subscribeIn } from './frames.js';
import { LiveClient } from './live-client.js';
import { Moments } from './moments.js';

/** A socket whose reader may stop reading. */
class SlowSocket {
  bufferedAmount = 0;
  reads = true;
  readonly sent: string[] = [];
  send(text: string): void {
    this.sent.push(text);
    if (!this.reads) this.bufferedAmount += text.length;
  }
}
const clientOf = (socket: SlowSocket): LiveClient => new LiveClient(socket as unknown as WebSocket);

describe('a client of /live that reads too slowly', () => {
  it('is told how far it was told, gets no more, and goes on from there when it asks', () => {
    const socket = new SlowSocket();
    const client = clientOf(socket);
    client.begin(new Set(['calls']), 5n);
    client.send('first', 10n);
    socket.reads = false;
    client.send('x'.repeat(2 * 1024 * 1024), 20n);
    client.send('more', 30n);
    client.send('and more', 40n);
    client.beat('now');
    expect(socket.sent.at(-1)).toBe('{"type":"lagged","position":"20"}');
    expect(socket.sent).toHaveLength(3);
    socket.bufferedAmount = 0;
    client.begin(new Set(['calls']), 20n);
    client.send('missed', 40n);
    expect(socket.sent.at(-1)).toBe('missed');
  });
});

describe('what a client says', () => {
  it('is a list of topics, and where it goes on', () => {
    expect(subscribeIn('{"subscribe":["calls","queue"],"since":"12"}')).toEqual({
      topics: new Set(['calls', 'queue']),
      since: 12n,
    });
    for (const wrong of ['', '7', '{}', '{"subscribe":"calls"}', '{"subscribe":[1]}', '{"subscribe":["x"]}'])
      expect(typeof subscribeIn(wrong)).toBe('string');
    expect(subscribeIn('{"subscribe":["calls"],"since":12}')).toContain('"since"');
  });

  it('gets a frame of its topics alone, and none when nothing of them changed', () => {
    const entries = [
      { commit: 1n, topic: 'calls' as const, text: '{"a":1}' },
      { commit: 2n, topic: 'pulls' as const, text: '{"b":2}' },
    ];
    expect(changesFrame(entries, new Set(['pulls', 'queue']), 2n)).toBe(
      '{"type":"changes","position":"2","changes":[{"b":2}]}',
    );
    expect(changesFrame(entries, new Set(['models']), 2n)).toBeUndefined();
  });
});

describe('what is of the moment', () => {
  it('is told when a client comes, and again when it changed by more than time', () => {
    const socket = new SlowSocket();
    const client = clientOf(socket);
    client.begin(new Set(['queue']), 0n);
    let queue = [{ callId: 'a', waitedSeconds: 1 }];
    const sources = { queue: () => queue as never, activity: () => [], readings: () => [] };
    const moments = new Moments(
      sources,
      () => [client],
      () => 0,
    );
    moments.greet(client);
    queue = [{ callId: 'a', waitedSeconds: 2 }];
    moments.round();
    expect(socket.sent).toHaveLength(1);
    queue = [{ callId: 'b', waitedSeconds: 0 }];
    moments.round();
    expect(
      socket.sent.map((text) => (JSON.parse(text) as { items: { callId: string }[] }).items[0]?.callId),
    ).toEqual(['a', 'b']);
    moments.stop();
  });
});
