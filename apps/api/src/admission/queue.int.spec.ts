import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PlacementDecidedData, WorkerEvent } from '#domain/events/worker-events.js';
import { openEventLog } from '#events/connect.js';
import { streams } from '#events/streams.js';
import { agentLineToken } from '#runtime/secrets.js';
import { foundModel, ScriptedAgent } from '../testing/scripted-agent.js';
import { sayHello, ScriptedEngine } from '../testing/scripted-engine.js';
import { eventually, gate, post, RawSocket, type Stand, startStand } from '../testing/stand.js';

const CHAT = '/v1/chat/completions';

interface Item {
  readonly callId: string;
  readonly place: number;
  readonly modelKey: string;
  readonly phase: string;
  readonly why: string;
  readonly background: boolean;
  readonly predicted?: { readonly predictedReadySeconds?: number };
}

describe('the queue, with room for every model and one slot for each', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  let loading: (data: PlacementDecidedData) => Promise<void> = () => Promise.resolve();

  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({
      models: ['chat-a', 'chat-b', 'chat-c', 'chat-d', 'chat-e'],
      portOf: () => engine.port,
      slots: 1,
      whileLoading: (data) => loading(data),
    });
    await eventually('the first answer', async () =>
      (await chat('chat-a')).status === 200 ? true : undefined,
    );
  });
  afterEach(() => {
    loading = () => Promise.resolve();
    engine.script = sayHello;
    engine.requests.length = 0;
  });
  afterAll(async () => {
    await stand.stop();
    engine.die();
  });

  const chat = (
    model: string,
    more: object = {},
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ) =>
    fetch(`${stand.url}${CHAT}`, {
      method: 'POST',
      headers,
      ...(signal ? { signal } : {}),
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...more }),
    });
  const queue = async () =>
    ((await (await fetch(`${stand.url}/admin/queue`)).json()) as { items: Item[] }).items;
  const queued = (what: string, count: number) =>
    eventually(what, async () => {
      const items = await queue();
      return items.length === count && items.every(({ place }) => place > 0) ? items : undefined;
    });
  /** Calls to chat-a stay at their engine until the test opens them. */
  const holdA = () => {
    const { open, opened } = gate();
    engine.script = async (request) => {
      if ((JSON.parse(request.body.toString()) as { model: string }).model === 'chat-a') await opened;
      return sayHello(request);
    };
    return open;
  };

  it('never makes a call to a resident wait behind a load', async () => {
    const { open, opened } = gate();
    loading = () => opened;
    const cold = chat('chat-b');
    await eventually('the load', async () => (await queue()).find(({ phase }) => phase === 'loading'));
    const warm = await chat('chat-a');
    expect(warm.status).toBe(200);
    expect(warm.headers.get('x-berth-cold')).toBe('0');
    expect(await queue()).toMatchObject([{ modelKey: 'chat-b', phase: 'loading' }]);
    open();
    expect((await cold).status).toBe(200);
  });

  it('lets calls wait for a slot of their model alone, background last, and shows order, prediction and why', async () => {
    const open = holdA();
    const first = chat('chat-a');
    await eventually('the call at the engine', () => engine.requests[0]);
    const background = chat('chat-a', { metadata: { intent: 'background' } });
    await queued('the background call', 1);
    const foreground = chat('chat-a');
    const items = await queued('both', 2);
    expect(items).toMatchObject([
      { place: 1, modelKey: 'chat-a', background: false, phase: 'slot' },
      { place: 2, modelKey: 'chat-a', background: true },
    ]);
    expect(items[0]!.why).toContain('slot');
    for (const { why, predicted } of items) {
      expect(why).not.toBe('');
      expect(predicted?.predictedReadySeconds).toBeGreaterThanOrEqual(0);
    }
    // The slots of one model are nobody else's.
    expect((await chat('chat-b')).status).toBe(200);
    open();
    const ids = [];
    for (const call of [first, foreground, background]) {
      const answer = await call;
      expect(answer.status).toBe(200);
      ids.push(answer.headers.get('x-berth-call')!);
    }
    const ends = [];
    for (const id of ids.slice(1)) ends.push(await stand.finished('chat-a', id));
    const [ahead, behind] = ends.map(({ stamps }) => Date.parse(stamps.forwardedAt ?? ''));
    expect(ahead).toBeLessThanOrEqual(behind!);
    expect(ends[1]!.queue).toMatchObject({ position: 1 });
  });

  it('takes the session from the header, from metadata or from user, and keeps its name to itself', async () => {
    const answers = [
      await chat('chat-a', {}, { 'x-session-id': 'my session' }),
      await chat('chat-a', { metadata: { session: 'my session' } }),
      await chat('chat-a', { user: 'my session' }),
      await chat('chat-a', { user: 'another' }),
      await chat('chat-a'),
    ];
    const ids = answers.map((answer) => answer.headers.get('x-berth-call')!);
    await stand.finished('chat-a', ids.at(-1)!);
    const events = await stand.callEvents('chat-a');
    const groups = ids.map((id) => {
      const started = events.find((e) => e.type === 'CallStarted' && e.data.callId === id);
      return started?.type === 'CallStarted' ? started.data.group : 'no such event';
    });
    expect(groups[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(groups.slice(1, 3)).toEqual([groups[0], groups[0]]);
    expect(groups[3]).toMatch(/^[0-9a-f]{32}$/);
    expect(groups[3]).not.toBe(groups[0]);
    expect(groups[4]).toBeUndefined();
    expect(JSON.stringify(events)).not.toContain('my session');
  });

  it('refuses the call that is one too many, and says when to come back', async () => {
    const set = (maxQueue: number | null) =>
      stand.log.append(
        streams.settings('fleet'),
        [
          {
            id: randomUUID(),
            event: { type: 'SettingsChanged', data: { patch: { maxQueue }, by: 'test' } },
            cause: { correlationId: 'test', causationId: 'test' },
          },
        ],
        'any',
      );
    await set(1);
    const open = holdA();
    const first = chat('chat-a');
    await eventually('the call at the engine', () => engine.requests[0]);
    const second = chat('chat-a');
    await queued('the second call', 1);
    const refused = await eventually('the setting to hold', async () => {
      const answer = await chat('chat-a', {}, {}, AbortSignal.timeout(300)).catch(() => undefined);
      return answer?.status === 503 ? answer : undefined;
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const { error } = (await refused.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('queue_full');
    expect(error.message).toContain('and 1 may');
    await set(null);
    open();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
  });

  it('lets a caller that leaves out of the queue at once', async () => {
    const open = holdA();
    const first = chat('chat-a');
    await eventually('the call at the engine', () => engine.requests[0]);
    const socket = new RawSocket(stand.port);
    socket.send(post(CHAT, JSON.stringify({ model: 'chat-a', messages: [] })));
    const [waiting] = await queued('the other', 1);
    socket.socket.destroy();
    await eventually('an empty queue', async () => ((await queue()).length === 0 ? true : undefined));
    expect(await stand.finished('chat-a', waiting!.callId)).toMatchObject({
      outcome: 'abandoned',
      status: 499,
    });
    expect(engine.requests).toHaveLength(1);
    open();
    expect((await first).status).toBe(200);
  });

  it('ends streams whose load fails with the error of their protocol, and refuses what has no head yet', async () => {
    const { open, opened } = gate();
    loading = async ({ residentId }) => {
      await opened;
      const data = {
        residentId,
        class: 'exited',
        message: 'it exited with 1',
        logTail: '',
        seconds: 0.1,
      } as const;
      await stand.agent.fact({ type: 'LoadFailed', data });
      await new Promise(() => undefined);
    };
    const asked = {
      model: 'chat-d',
      stream: true,
      max_tokens: 5,
      messages: [{ role: 'user', content: 'hi' }],
    };
    const ask = (path: string, body: object) => {
      const socket = new RawSocket(stand.port);
      socket.send(post(path, JSON.stringify(body)));
      return socket;
    };
    const { messages: _, ...others } = asked;
    const sockets = {
      chat: ask(CHAT, asked),
      messages: ask('/v1/messages', asked),
      responses: ask('/v1/responses', { ...others, input: 'hi' }),
      ollama: ask('/api/chat', asked),
    };
    await sockets.chat.hears(': loading chat-d');
    await sockets.responses.hears(': loading chat-d');
    await sockets.messages.hears('event: ping');
    // Its stream has no comments: it is held like a call that is not streamed.
    expect(sockets.ollama.heard).toBe('');
    open();
    const heard = await sockets.chat.ends();
    expect(heard).toMatch(/data: \{"error":\{[^\n]*"code":"model_load_failed"/);
    expect(heard).not.toContain('[DONE]');
    expect(heard.endsWith('0\r\n\r\n')).toBe(false);
    expect(await sockets.messages.ends()).toMatch(/event: error\ndata: \{"type":"error"/);
    expect(await sockets.responses.ends()).toContain('event: response.failed');
    expect(await sockets.ollama.hears('"error"')).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: \d+/i);
    sockets.ollama.socket.destroy();
  });

  it('answers from memory while a load that failed is not tried again', async () => {
    let loads = 0;
    loading = async ({ residentId, modelKey }) => {
      if (modelKey !== 'chat-c') return;
      loads += 1;
      await stand.agent.fact({
        type: 'LoadFailed',
        data: {
          residentId,
          class: 'exited',
          message: 'it exited with 1',
          logTail: '',
          seconds: 0.1,
        },
      });
      // The load is over: nothing comes after its failure.
      await new Promise(() => undefined);
    };
    const failed = await chat('chat-c');
    expect(failed.status).toBe(503);
    // Every way to place it was tried once.
    const tried = loads;
    expect(tried).toBeGreaterThan(0);
    const again = await chat('chat-c');
    const { error } = (await again.json()) as { error: { code: string; message: string } };
    expect(again.status).toBe(503);
    expect(error).toMatchObject({ code: 'model_load_failed' });
    expect(error.message).toContain('it exited with 1');
    expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(again.headers.get('x-should-retry')).toBe('false');
    expect(loads).toBe(tried);
    expect(await queue()).toEqual([]);
  });

  it('has a model loaded on another worker too when its calls would wait long for a slot, and serves them there', async () => {
    const { open, opened } = gate();
    let held = 0;
    // Half a second a token: a call behind another is told to wait a minute.
    const timings = { prompt_n: 4, prompt_ms: 8, predicted_n: 100, predicted_ms: 50_000 };
    engine.script = async ({ res }) => {
      if (held++ === 1) await opened;
      const usage = { prompt_tokens: 7, completion_tokens: 100 };
      const choices = [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }];
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ object: 'chat.completion', choices, usage, timings }));
    };
    const first = await chat('chat-e');
    await stand.finished('chat-e', first.headers.get('x-berth-call')!);
    const log = openEventLog({ url: stand.node.url, by: 'test', now: Date.now });
    const other = await new ScriptedAgent({
      log,
      token: agentLineToken(stand.home),
      models: [foundModel('chat-e')],
      portOf: () => engine.port,
      slots: 1,
    }).start();
    try {
      const slow = chat('chat-e');
      await eventually('the call at the engine', () => engine.requests[1]);
      const answer = await chat('chat-e');
      expect(answer.status).toBe(200);
      const { residentId } = await stand.finished('chat-e', answer.headers.get('x-berth-call')!);
      const placed: unknown[] = [];
      for await (const { event } of stand.log.readForwards<WorkerEvent>(streams.worker(other.id)))
        if (event.type === 'PlacementDecided') placed.push(event.data);
      const forSlots = { waiting: 1, waitSeconds: expect.any(Number) as number };
      expect(placed).toEqual([expect.objectContaining({ residentId, forSlots })]);
      open();
      expect((await slow).status).toBe(200);
    } finally {
      open();
      await other.stop();
      await log.close();
    }
  });
});
