import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ClientOptions } from 'ws';
import { RAM } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import { LiveListener } from '../../testing/live-listener.js';
import { ScriptedEngine } from '../../testing/scripted-engine.js';
import { eventually, post, RawSocket, type Stand, startStand } from '../../testing/stand.js';

const MODEL = 'chat-a';

/** @returns the id of the call. */
async function callOf(stand: Stand, model: string): Promise<string> {
  const response = await fetch(`${stand.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [] }),
  });
  await response.text();
  return response.headers.get('x-berth-call') ?? '';
}

describe('/live', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  const listeners: LiveListener[] = [];
  const listen = (url = stand.url, options: ClientOptions = {}, protocols: readonly string[] = []) => {
    const listener = new LiveListener(url, options, protocols);
    listeners.push(listener);
    return listener;
  };

  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({ models: [MODEL, 'chat-b'], portOf: () => engine.port });
  });
  afterAll(async () => {
    for (const listener of listeners) listener.socket.terminate();
    await stand.stop();
    engine.die();
  });

  const call = (model = MODEL) => callOf(stand, model);
  const pull = async (): Promise<string> => {
    const pullId = newId();
    const id = newId();
    await stand.log.append(
      streams.pull(stand.agent.id),
      [
        {
          id,
          event: { type: 'PullRequested', data: { pullId, source: 'owner/repo', by: 'test' } },
          cause: { correlationId: id, causationId: id },
        },
      ],
      'any',
    );
    return pullId;
  };

  it('shows how things stand, then each change of a cold call in the order of the log', async () => {
    const listener = await listen().subscribe([
      'residents',
      'devices',
      'calls',
      'decisions',
      'queue',
      'models',
    ]);
    expect((await listener.snapshot('residents')).items).toEqual([]);
    expect((await listener.snapshot('devices')).items).toMatchObject([
      {
        workerId: stand.agent.id,
        workerName: 'scripted',
        workerLost: false,
        deviceId: 'ram',
        residentBytes: 0,
      },
    ]);
    expect((await listener.snapshot('models')).items.map((m) => m.modelKey).sort()).toEqual([
      MODEL,
      'chat-b',
    ]);
    const callId = await call();
    await listener.heardOf(
      'calls',
      'the end of the call',
      (c) => c.callId === callId && c.state === 'completed',
    );
    await listener.heardOf('residents', 'a resident that is ready', (r) => r.phase === 'ready');
    const told = listener.changes.filter((c) => c.topic === 'residents').map((c) => c.item.phase);
    expect(told.filter((phase, n) => told[n - 1] !== phase)).toEqual(['planned', 'loading', 'ready']);
    const decision = listener.changes.findLast((c) => c.topic === 'decisions');
    expect(decision?.item).toMatchObject({ callId, state: 'ready', modelKey: MODEL, admitted: true });
    expect(decision?.item.actual.loadSeconds).toBeGreaterThanOrEqual(0);
    const device = listener.changes.findLast((c) => c.topic === 'devices');
    const resident = listener.changes.findLast((c) => c.topic === 'residents');
    expect(device?.item.residentBytes).toBe(resident?.item.memory.reduce((sum, { bytes }) => sum + bytes, 0));
    const positions = listener.changes.map((c) => BigInt(c.position));
    expect(positions).toEqual([...positions].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    const queued = listener.frames.flatMap((f) =>
      f.type === 'moment' && f.topic === 'queue' ? [f.items] : [],
    );
    expect(queued.at(0)).toEqual([]);
  });

  it('shows a client that comes late what it would have seen', async () => {
    const late = await listen().subscribe(['residents', 'calls', 'decisions', 'evictions']);
    expect((await late.snapshot('residents')).items).toMatchObject([{ modelKey: MODEL, phase: 'ready' }]);
    expect((await late.snapshot('calls')).items).toMatchObject([{ modelKey: MODEL, state: 'completed' }]);
    expect((await late.snapshot('decisions')).items).toMatchObject([{ modelKey: MODEL, state: 'ready' }]);
    // An api that starts now has read it from the log.
    const other = await stand.startAnother();
    const there = await listen(String(other.details['url'])).subscribe(['residents', 'calls', 'decisions']);
    for (const topic of ['residents', 'calls', 'decisions'] as const) {
      const here = (await late.snapshot(topic)).items;
      expect((await there.snapshot(topic)).items).toEqual(here);
    }
  });

  it('misses nothing and repeats nothing for a client that comes back, and takes no snapshot for it', async () => {
    const ids: string[] = [];
    const first = await listen().subscribe(['pulls']);
    await first.snapshot('pulls');
    for (let n = 0; n < 3; n += 1) ids.push(await pull());
    await first.heardOf('pulls', 'the third pull', (p) => p.pullId === ids[2]);
    const { position } = first;
    await first.leave();
    for (let n = 0; n < 3; n += 1) ids.push(await pull());
    const again = await listen().subscribe(['pulls'], position);
    ids.push(await pull());
    await again.heardOf('pulls', 'the last pull', (p) => p.pullId === ids.at(-1));
    const heard = [...first.changes, ...again.changes].map((c) => (c.topic === 'pulls' ? c.item.pullId : ''));
    expect(heard).toEqual(ids);
    expect(again.frames.some((frame) => frame.type === 'snapshot')).toBe(false);
    // A position that is older than what is remembered: how things stand, whole.
    const old = await listen().subscribe(['pulls'], '0');
    expect((await old.snapshot('pulls')).items.map((p) => p.pullId)).toEqual(ids);
  });

  it('refuses pages of elsewhere, who has no right to management, and topics that there are not', async () => {
    const foreign = listen(stand.url, { headers: { origin: 'https://evil.example' } });
    await eventually('the refusal of the page', () => foreign.refusedWith);
    expect(foreign.refusedWith).toBe(401);
    const created = await fetch(`${stand.url}/admin/keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'page', scope: 'admin' }),
    });
    const { key } = (await created.json()) as { key: string };
    const outside = { 'x-forwarded-for': '8.8.8.8' };
    const keyed = { authorization: `Bearer ${key}` };
    const page = listen(stand.url, { headers: { ...keyed, origin: 'https://evil.example' } });
    await eventually('the refusal of the page that has a key', () => page.refusedWith);
    expect(page.refusedWith).toBe(403);
    const keyless = listen(stand.url, { headers: outside });
    await eventually('the refusal of who has no key', () => keyless.refusedWith);
    expect(keyless.refusedWith).toBe(401);
    // As a page sends its key, which can set no header.
    const named = listen(stand.url, { headers: outside }, ['berth.live', `berth.key.${key}`]);
    await named.subscribe(['pulls']);
    await named.snapshot('pulls');
    expect(named.socket.protocol).toBe('berth.live');
    named.socket.send('{"subscribe": ["secrets"]}');
    const refusal = await named.hears('the refusal of the topic', (f) => f.type === 'error');
    expect(refusal.message).toContain('Topics are residents');
  });

  it('passes over a wish for HTTP/2: the request is served as it stands, its body too', async () => {
    const body = JSON.stringify({ model: MODEL, messages: [] });
    const socket = new RawSocket(stand.port);
    const upgrade = ['upgrade: h2c', 'connection: Upgrade, HTTP2-Settings', 'http2-settings: AAMAAABk'];
    socket.send(post('/v1/chat/completions', body, upgrade));
    await socket.hears(/HTTP\/1\.1 200[\s\S]*"choices"/);
    socket.send('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await socket.hears(/"service"|"status":"/);
    socket.socket.destroy();
  });
});

describe('/live, first listened to late', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({ models: [MODEL], portOf: () => engine.port });
  });
  afterAll(async () => {
    await stand.stop();
    engine.die();
  });

  it('shows a decision that lies far back, behind what is written between decisions', async () => {
    await callOf(stand, MODEL);
    const id = newId();
    const cause = { correlationId: id, causationId: id };
    await stand.log.append(
      streams.worker(stand.agent.id),
      Array.from({ length: 1000 }, (_, at) => ({
        id: newId(),
        event: {
          type: 'ForeignUseChanged' as const,
          data: { deviceId: RAM, bytes: (at % 2) * 128 * MIB, processes: [] },
        },
        cause,
      })),
      'any',
    );
    const listener = new LiveListener(stand.url);
    onTestFinished(() => listener.socket.terminate());
    // Nobody has listened before: what is shown is read from the log now.
    const { items } = await (await listener.subscribe(['decisions'])).snapshot('decisions');
    expect(items.map((decision) => decision.modelKey)).toEqual([MODEL]);
  });
});
