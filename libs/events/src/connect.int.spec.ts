import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, Recorded, WorkerEvent } from '#domain/events/index.js';
import { openEventLog } from './connect.js';
import type { EventLog, NewEvent, Subscription } from './event-log.js';
import { readUntil } from './read-until.js';
import { openSpool } from './spool.js';
import { type EmbeddedNode, startEmbeddedNode } from './testing/embedded-node.js';
import { SAMPLES } from './testing/samples.js';
import { until } from './testing/until.js';

let node: EmbeddedNode;
let logs: EventLog[] = [];
let warnings: string[] = [];

beforeAll(async () => {
  node = await startEmbeddedNode();
});
afterAll(async () => {
  await node.stop();
});
afterEach(async () => {
  node.thaw();
  await Promise.all(logs.map((log) => log.close()));
  logs = [];
  warnings = [];
});

const connect = (url = node.url): EventLog => {
  const warn = (message: string) => void warnings.push(message);
  const log = openEventLog({ url, by: 'test', now: Date.now, log: { warn, info: warn, error: warn } });
  logs.push(log);
  return log;
};
let streamsMade = 0;
const newStream = (category = 'worker') => `${category}-test-${process.pid}-${++streamsMade}`;
const pin = (by: string, id = randomUUID()): NewEvent<WorkerEvent> => ({
  id,
  event: { type: 'PinSet', data: { ...SAMPLES.PinSet, by } },
  cause: { correlationId: 'corr', causationId: 'cause' },
});
const by = (recorded: Recorded<BerthEvent>): string =>
  recorded.event.type === 'PinSet' ? recorded.event.data.by : recorded.event.type;
const names = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => String(from + i));
const readAll = async (log: EventLog, stream: string): Promise<Recorded<BerthEvent>[]> => {
  const all: Recorded<BerthEvent>[] = [];
  for await (const recorded of log.readForwards(stream)) all.push(recorded);
  return all;
};

describe('appending and reading', () => {
  it('gives back what was written, with its cause, its writer and its place', async () => {
    const log = connect();
    const stream = newStream();
    const first = pin('a');
    const outcome = await log.append(stream, [first, pin('b')], 'no-stream');
    expect(outcome).toMatchObject({ ok: true, value: { revision: 1 } });
    const read = await readAll(log, stream);
    expect(read.map(by)).toEqual(['a', 'b']);
    expect(read[0]).toMatchObject({
      id: first.id,
      stream,
      revision: 0,
      event: first.event,
      metadata: { $correlationId: 'corr', $causationId: 'cause', by: 'test', schemaVersion: 1 },
    });
    if (outcome.ok) expect(read[1]?.position).toEqual(outcome.value.position);
    expect((await log.endPosition())?.commit).toBeGreaterThanOrEqual(read[1]?.position.commit ?? 1n);
  });

  it('reads a missing stream as an empty one, in every way', async () => {
    const log = connect();
    const stream = newStream();
    expect(await readAll(log, stream)).toEqual([]);
    expect(await log.readBackwards(stream, 10)).toEqual([]);
    expect(await log.fold(stream, 7, (n) => n + 1)).toBe(7);
  });

  it('reads from a revision, at most so many, and backwards', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(
      stream,
      names(0, 10).map((n) => pin(n)),
      'any',
    );
    const some: string[] = [];
    for await (const r of log.readForwards(stream, { fromRevision: 4, maxCount: 3 })) some.push(by(r));
    expect(some).toEqual(['4', '5', '6']);
    expect((await log.readBackwards(stream, 3)).map(by)).toEqual(['9', '8', '7']);
    expect(await log.fold(stream, '', (text, r) => text + by(r))).toBe('0123456789');
  });

  it('reports a conflict with the revision that the stream really has', async () => {
    const log = connect();
    const stream = newStream();
    expect(await log.append(stream, [pin('x')], 3)).toEqual({
      ok: false,
      error: { kind: 'conflict', actual: -1 },
    });
    await log.append(stream, [pin('a'), pin('b')], -1);
    expect(await log.append(stream, [pin('x')], 0)).toEqual({
      ok: false,
      error: { kind: 'conflict', actual: 1 },
    });
    expect(await log.append(stream, [pin('x')], 'no-stream')).toEqual({
      ok: false,
      error: { kind: 'conflict', actual: 1 },
    });
    expect(await log.append(stream, [pin('c')], 1)).toMatchObject({ ok: true, value: { revision: 2 } });
  });

  it('answers a repeated append with success and writes nothing twice', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(stream, [pin('before')], 'no-stream');
    const events = [pin('a'), pin('b')];
    const first = await log.append(stream, events, 0);
    const again = await log.append(stream, events, 0);
    expect(first).toMatchObject({ ok: true, value: { revision: 2 } });
    expect(again).toEqual(first);
    expect(await log.append(stream, events, 'any')).toEqual(first);
    expect((await readAll(log, stream)).map(by)).toEqual(['before', 'a', 'b']);
  });

  it('has one winner among many that append after the same revision', async () => {
    const stream = newStream();
    const racers = Array.from({ length: 4 }, () => connect());
    for (let revision = -1; revision < 20; revision++) {
      const outcomes = await Promise.all(
        racers.map((log, i) => log.append(stream, [pin(`${revision}/${i}`)], revision)),
      );
      expect(outcomes.filter((o) => o.ok)).toHaveLength(1);
      for (const o of outcomes)
        if (!o.ok) expect(o.error).toEqual({ kind: 'conflict', actual: revision + 1 });
    }
  });

  it('refuses an event above 1 MiB with the figure', async () => {
    const outcome = await connect().append(newStream(), [pin('x'.repeat(1_100_000))], 'any');
    expect(outcome).toMatchObject({ ok: false, error: { kind: 'refused' } });
    if (!outcome.ok && outcome.error.kind === 'refused') expect(outcome.error.message).toMatch(/1\.0 MiB/);
  });

  it('leaves no call open when reads are left early: the connection serves on after 150 of them', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(
      stream,
      names(0, 500).map((n) => pin(n)),
      'any',
    );
    for (let i = 0; i < 150; i++) {
      for await (const r of log.readForwards(stream)) {
        expect(by(r)).toBe('0');
        break;
      }
    }
    expect((await log.readBackwards(stream, 1)).map(by)).toEqual(['499']);
  });
});

describe('the identity', () => {
  it('is the first event of a fresh log, and every client reads the same', async () => {
    const own = await startEmbeddedNode();
    try {
      const clients = Array.from({ length: 4 }, () => connect(own.url));
      const ids = await Promise.all(
        clients.map(async (log, i) => {
          if (i % 2 === 0) await log.append(newStream(), [pin('a')], 'any');
          return log.identity();
        }),
      );
      expect(new Set(ids).size).toBe(1);
      const [first, ...more] = await readAll(clients[0]!, 'log-identity');
      expect(first?.event).toMatchObject({ type: 'LogCreated', data: { logId: ids[0] } });
      expect(more).toEqual([]);
      const order: string[] = [];
      const subscription = clients[1]!.subscribeAll([], { onEvent: (r) => void order.push(r.stream) });
      await until(() => order.length >= 3);
      await subscription.stop();
      expect(order[0]).toBe('log-identity');
    } finally {
      await own.stop();
    }
  });
});

describe('subscriptions', () => {
  it('hand over what is there, say that they have caught up, and follow', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(stream, [pin('a'), pin('b')], 'any');
    const heard: string[] = [];
    const subscription = log.subscribe(stream, {
      onEvent: (r) => void heard.push(by(r)),
      onCaughtUp: () => void heard.push('caught up'),
      onConnected: (connected) => void heard.push(`connected ${connected}`),
    });
    await until(() => heard.includes('caught up'));
    await log.append(stream, [pin('c')], 'any');
    await until(() => heard.includes('c'));
    expect(heard).toEqual(['connected true', 'a', 'b', 'caught up', 'c']);
    await subscription.stop();
    await subscription.ended;
  });

  it('catch up on a missing stream too, and hear of its first event', async () => {
    const log = connect();
    const stream = newStream();
    const heard: string[] = [];
    log.subscribe(stream, {
      onEvent: (r) => void heard.push(by(r)),
      onCaughtUp: () => void heard.push('caught up'),
    });
    await until(() => heard.includes('caught up'));
    await log.append(stream, [pin('a')], 'no-stream');
    await until(() => heard.includes('a'));
  });

  const purposes: [string, (log: EventLog, of: string, onCaughtUp: () => void) => Subscription][] = [
    ['to a stream', (log, of, onCaughtUp) => log.subscribe(of, { onEvent: () => undefined, onCaughtUp })],
    ['to the log', (log, of, onCaughtUp) => log.subscribeAll([of], { onEvent: () => undefined, onCaughtUp })],
  ];
  it.each(purposes)(
    '%s stand once per purpose: a second is refused from the first moment on, and taken when the first has stopped',
    async (_, subscribe) => {
      const log = connect();
      const purpose = newStream();
      let caughtUp = 0;
      const follow = (of = purpose) =>
        subscribe(log, of, () => {
          caughtUp++;
        });
      const first = follow();
      expect(() => follow()).toThrow(/follows .* already; hand the events on/);
      await until(() => caughtUp === 1);
      expect(() => follow()).toThrow(/follows .* already/);
      const other = follow(newStream());
      await until(() => caughtUp === 2);
      await first.stop();
      const second = follow();
      await until(() => caughtUp === 3);
      await Promise.all([second.stop(), other.stop()]);
    },
  );

  it('read what is there, as often as it is asked, beside one that follows the same streams', async () => {
    const log = connect();
    await log.append(newStream('operator'), [pin('a')], 'any');
    let caughtUp = false;
    log.subscribeAll(['operator-'], { onEvent: () => undefined, onCaughtUp: () => void (caughtUp = true) });
    await until(() => caughtUp);
    await new Promise((resolve) => setImmediate(resolve));
    const read = async () => {
      const heard: string[] = [];
      await readUntil(log, ['operator-'], undefined, (r) => heard.push(by(r)) > 0);
      return heard;
    };
    const [first, second] = await Promise.all([read(), read()]);
    expect(first).toContain('a');
    expect(second).toEqual(first);
  });

  it('begin after a revision', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(stream, [pin('a'), pin('b'), pin('c')], 'any');
    const heard: string[] = [];
    log.subscribe(
      stream,
      { onEvent: (r) => void heard.push(by(r)), onCaughtUp: () => void heard.push('caught up') },
      { afterRevision: 1 },
    );
    await until(() => heard.includes('caught up'));
    expect(heard).toEqual(['c', 'caught up']);
  });

  it('run one handler at a time, in order, and caught up comes after the last of them', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(
      stream,
      names(0, 60).map((n) => pin(n)),
      'any',
    );
    const heard: string[] = [];
    let running = 0;
    let most = 0;
    log.subscribe(stream, {
      onEvent: async (r) => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 1));
        heard.push(by(r));
        running--;
      },
      onCaughtUp: () => void heard.push('caught up'),
    });
    await until(() => heard.includes('caught up'));
    expect(heard).toEqual([...names(0, 60), 'caught up']);
    expect(most).toBe(1);
  });

  it('to the whole log see the named prefixes only, in one order, and go on after a position', async () => {
    const log = connect();
    const [a, b, other] = [newStream('operator'), newStream('pull'), newStream('settings')];
    const from = await log.endPosition();
    for (const n of names(0, 10)) await log.append(Number(n) % 2 ? a : b, [pin(n)], 'any');
    await log.append(other, [pin('other')], 'any');
    const first: Recorded<BerthEvent>[] = [];
    const one = log.subscribeAll(
      ['operator-', 'pull-'],
      { onEvent: (r) => void first.push(r) },
      from ? { after: from } : {},
    );
    await until(() => first.length === 10);
    await one.stop();
    expect(first.map(by)).toEqual(names(0, 10));
    const rest: string[] = [];
    log.subscribeAll(
      ['operator-', 'pull-'],
      { onEvent: (r) => void rest.push(by(r)), onCaughtUp: () => void rest.push('caught up') },
      { after: first[5]!.position },
    );
    await until(() => rest.includes('caught up'));
    expect(rest).toEqual(['6', '7', '8', '9', 'caught up']);
  });

  it('say how far they are through events that are none of theirs', async () => {
    const log = connect();
    const noise = newStream('noise');
    const from = await log.endPosition();
    for (let i = 0; i < 6; i++)
      await log.append(
        noise,
        names(0, 400).map((n) => pin(n)),
        'any',
      );
    const end = await log.endPosition();
    let at: bigint | undefined;
    log.subscribeAll(
      ['absent-'],
      { onEvent: () => undefined, onCheckpoint: (position) => void (at = position.commit) },
      from ? { after: from } : {},
    );
    await until(() => at !== undefined);
    expect(at).toBeGreaterThan(from?.commit ?? 0n);
    expect(at).toBeLessThanOrEqual(end?.commit ?? 0n);
  });

  it('end with the reason when a handler fails, and call no handler again', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(stream, [pin('a'), pin('b')], 'any');
    let calls = 0;
    const subscription = log.subscribe(stream, {
      onEvent: () => {
        calls++;
        throw new Error('cannot read that');
      },
    });
    await expect(subscription.ended).rejects.toThrow('cannot read that');
    expect(calls).toBe(1);
  });
});

describe('over TLS', () => {
  it('asks a server on an address by no name, which Node would warn of, and holds its certificate against the address', async () => {
    const secure = await startEmbeddedNode(undefined, { secure: true });
    const said: string[] = [];
    const hear = (warning: Error) => void said.push(`${warning.name} ${warning.message}`);
    process.on('warning', hear);
    // The same node behind an address that its certificate does not have.
    const elsewhere = createServer((from) => {
      const to = createConnection(secure.port, '127.0.0.1');
      from.pipe(to).pipe(from);
      for (const socket of [from, to]) socket.on('error', () => socket.destroy());
    }).listen(0, '127.0.0.2');
    try {
      await once(elsewhere, 'listening');
      expect(await connect(secure.url).append('worker-a', [pin('a')], 'no-stream')).toMatchObject({
        ok: true,
      });
      const { port } = elsewhere.address() as AddressInfo;
      const misplaced = connect(secure.url.replace(`127.0.0.1:${secure.port}`, `127.0.0.2:${port}`));
      expect(await misplaced.append('worker-a', [pin('b')], 'any', { deadlineMs: 3000 })).toMatchObject({
        ok: false,
        error: { message: expect.stringContaining('127.0.0.2') as string },
      });
      expect(said).toEqual([]);
    } finally {
      process.off('warning', hear);
      elsewhere.close();
      await secure.stop();
    }
  });

  it('speaks with the node as it is started by default, and is refused with another password', async () => {
    const secure = await startEmbeddedNode(undefined, { secure: true });
    try {
      const log = connect(secure.url);
      expect(await log.append('worker-a', [pin('a')], 'no-stream')).toMatchObject({ ok: true });
      expect((await readAll(log, 'worker-a')).map(by)).toEqual(['a']);
      const stranger = connect(secure.url.replace(/:[^:@/]+@/, ':wrong@'));
      await expect(stranger.readBackwards('worker-a', 1)).rejects.toThrow(/refused to read worker-a/);
    } finally {
      await secure.stop();
    }
  });
});

describe('when the node is away', () => {
  it(
    'killed and restarted under load, nothing acknowledged is lost and nothing is handed over twice',
    { timeout: 180_000 },
    async () => {
      const log = connect();
      const stream = newStream();
      const [one, all]: [string[], string[]] = [[], []];
      const connections: boolean[] = [];
      const follow: Subscription[] = [
        log.subscribe(stream, {
          onEvent: (r) => void one.push(by(r)),
          onConnected: (connected) => void connections.push(connected),
        }),
        log.subscribeAll(['worker-'], {
          onEvent: (r) => {
            if (r.stream === stream) all.push(by(r));
          },
        }),
      ];
      const stopping = new AbortController();
      let revision = -1;
      const written: string[] = [];
      const writing = (async () => {
        while (!stopping.signal.aborted) {
          const event = pin(String(written.length));
          // The same id and revision until it is acknowledged: so an unknown outcome is never written twice.
          for (;;) {
            const outcome = await log.append(stream, [event], revision, { deadlineMs: 1000 });
            if (outcome.ok) {
              revision = outcome.value.revision;
              break;
            }
            expect(outcome.error.kind).toBe('unavailable');
            await new Promise((resolve) => setTimeout(resolve, 20));
          }
          written.push(String(written.length));
        }
      })();
      for (let kills = 0; kills < 2; kills++) {
        const before = written.length;
        await until(() => written.length > before + 30);
        await node.kill9();
        await node.restart();
      }
      const before = written.length;
      await until(() => written.length > before + 30);
      stopping.abort();
      await writing;
      await until(() => one.length >= written.length && all.length >= written.length);
      await Promise.all(follow.map((s) => s.stop()));
      expect(one).toEqual(written);
      expect(all).toEqual(written);
      expect((await readAll(log, stream)).map(by)).toEqual(written);
      expect(connections.slice(0, 3)).toEqual([true, false, true]);
      expect(warnings.join()).toContain('broke');
    },
  );

  it('frozen, an append is unavailable within its deadline, and its retry is written once', async () => {
    const log = connect();
    const stream = newStream();
    await log.append(stream, [pin('before')], 'no-stream');
    node.freeze();
    const events = [pin('a')];
    const started = performance.now();
    const outcomes = await Promise.all([
      log.append(stream, events, 0, { deadlineMs: 300 }),
      log.append(newStream(), [pin('b')], 'any', { deadlineMs: 300 }),
    ]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    // The deadline is 300 ms; the client's own would be 18 s of keep-alive.
    expect(performance.now() - started).toBeLessThan(10_000);
    node.thaw();
    let retried = await log.append(stream, events, 0);
    while (!retried.ok && retried.error.kind === 'unavailable') retried = await log.append(stream, events, 0);
    expect(retried).toMatchObject({ ok: true, value: { revision: 1 } });
    expect((await readAll(log, stream)).map(by)).toEqual(['before', 'a']);
  });

  it('out of reach from the start, appends and reads say so, and work once it is there', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-late-'));
    const late = await startEmbeddedNode(dir);
    await late.kill9();
    try {
      const log = connect(late.url);
      const stream = newStream();
      const heard: string[] = [];
      log.subscribe(stream, { onEvent: (r) => void heard.push(by(r)) });
      expect(await log.append(stream, [pin('a')], 'any')).toMatchObject({
        ok: false,
        error: { kind: 'unavailable' },
      });
      await expect(log.readBackwards(stream, 1)).rejects.toMatchObject({
        error: { code: 'event_log_unavailable' },
      });
      await late.restart();
      await until(async () => (await log.append(stream, [pin('b')], 'no-stream')).ok);
      await until(() => heard.includes('b'));
    } finally {
      await late.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('the spool keeps call events over the outage and appends them once, in order', async () => {
    const log = connect();
    const dir = mkdtempSync(join(tmpdir(), 'berth-spool-'));
    const spool = openSpool({ dir, log, now: Date.now });
    const stream = newStream('calls');
    const record = (n: string) =>
      spool.record(stream, {
        id: randomUUID(),
        event: { type: 'CallStarted', data: { ...SAMPLES.CallStarted, endpoint: n } },
        cause: { correlationId: 'c', causationId: 'c' },
      });
    try {
      names(0, 100).forEach(record);
      await until(async () => (await log.readBackwards(stream, 1)).length > 0);
      names(100, 200).forEach(record);
      await node.kill9();
      names(200, 1300).forEach(record);
      expect(await spool.drain(200)).toBe(false);
      await node.restart();
      names(1300, 1400).forEach(record);
      expect(await spool.drain(20_000)).toBe(true);
      const written = (await readAll(log, stream)).map((r) =>
        r.event.type === 'CallStarted' ? r.event.data.endpoint : '',
      );
      expect(written).toEqual(names(0, 1400));
      expect(spool.lost).toBe(0);
    } finally {
      await spool.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('answering with another log, a subscription ends and says so', async () => {
    const own = await startEmbeddedNode();
    try {
      const log = connect(own.url);
      const subscription = log.subscribe('worker-a', { onEvent: () => undefined });
      await until(async () => (await log.append('worker-a', [pin('a')], 'any')).ok);
      await own.kill9();
      rmSync(own.dir, { recursive: true, force: true });
      await own.restart();
      await expect(subscription.ended).rejects.toThrow('another event log');
    } finally {
      await own.stop();
    }
  });

  it('closing does not wait for a node that does not answer', async () => {
    const log = connect();
    const stream = newStream();
    const subscription = log.subscribe(stream, { onEvent: () => undefined });
    await log.append(stream, [pin('a')], 'any');
    node.freeze();
    const append = log.append(stream, [pin('b')], 'any', { deadlineMs: 500 });
    await log.close();
    await subscription.ended;
    expect(await append).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await log.append(stream, [pin('c')], 'any')).toMatchObject({
      ok: false,
      error: { kind: 'unavailable', message: 'This process has closed its connection to the event log.' },
    });
  });
});
