import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FleetEvent, WorkerEvent, WorkerEventData } from '#domain/events/index.js';
import { apiId, callId } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { streams } from '#events/streams.js';
import { bootId } from '#runtime/process-info.js';
import { hostname } from 'node:os';
import { sayHello, ScriptedEngine } from '../testing/scripted-engine.js';
import { eventually, gate, post, RawSocket, type Stand, startStand } from '../testing/stand.js';

const CHAT = '/v1/chat/completions';

describe('admission on a real log, with room for one model', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  let loading: () => Promise<void> = () => Promise.resolve();
  const said: string[] = [];

  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({
      models: ['chat-a', 'chat-b'],
      portOf: () => engine.port,
      ramLimitBytes: 320 * MIB,
      whileLoading: () => loading(),
      onLogLine: (line) => said.push(line),
    });
  });
  beforeEach(() =>
    eventually('the agent', async () => ((await health()).status === 'ok' ? true : undefined)),
  );
  afterEach(() => {
    loading = () => Promise.resolve();
    engine.script = sayHello;
    engine.requests.length = 0;
  });
  afterAll(async () => {
    await stand.stop();
    engine.die();
  });

  const health = async () => (await (await fetch(`${stand.url}/health`)).json()) as { status: string };
  const chat = (model: string, more: object = {}) =>
    fetch(`${stand.url}${CHAT}`, {
      method: 'POST',
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...more }),
    });
  /** Has the model loaded, and forgets how. */
  const prime = async (model: string) => {
    expect((await chat(model)).status).toBe(200);
    engine.requests.length = 0;
  };
  const workerEvents = async () => {
    const events: WorkerEvent[] = [];
    for await (const { event } of stand.log.readForwards<WorkerEvent>(streams.worker(stand.agent.id))) {
      events.push(event);
    }
    return events;
  };
  const decisions = async (key: string) =>
    (await workerEvents()).flatMap((event) =>
      event.type === 'PlacementDecided' && event.data.modelKey === key ? [event.data] : [],
    );
  const queue = async () =>
    (
      (await (await fetch(`${stand.url}/admin/queue`)).json()) as {
        items: { modelKey: string; phase: string }[];
      }
    ).items;

  it('answers two calls at once to two models of which one fits, and evicts only after the drain', async () => {
    const [a, b] = await Promise.all([chat('chat-a'), chat('chat-b')]);
    expect([a.status, b.status]).toEqual([200, 200]);
    const evicted = (await workerEvents()).flatMap((e) =>
      e.type === 'ResidentEvicted' ? [e.data.residentId] : [],
    );
    expect(evicted).toHaveLength(1);
    expect(stand.agent.drained).toEqual(evicted);
  });

  it('lets several callers of a cold model share one load', async () => {
    await prime('chat-a');
    const before = (await decisions('chat-b')).length;
    const answers = await Promise.all(Array.from({ length: 8 }, () => chat('chat-b')));
    expect(answers.map((answer) => answer.status)).toEqual(Array(8).fill(200));
    expect((await decisions('chat-b')).length).toBe(before + 1);
    const ids = new Set(answers.map((answer) => answer.headers.get('x-berth-cold')));
    expect(ids.has(null)).toBe(false);
  });

  it('never stops a resident with a call on it: the other model waits for its end', async () => {
    await prime('chat-a');
    const { open, opened } = gate();
    engine.script = async (request) => {
      const { model } = JSON.parse(request.body.toString()) as { model: string };
      if (model === 'chat-a') await opened;
      return sayHello(request);
    };
    const a = chat('chat-a');
    await eventually('the call at the engine', () => engine.requests[0]);
    const b = chat('chat-b');
    await eventually('the other in the queue', async () =>
      (await queue()).some((item) => item.modelKey === 'chat-b' && item.phase === 'waiting')
        ? true
        : undefined,
    );
    expect(engine.requests).toHaveLength(1);
    open();
    expect((await a).status).toBe(200);
    expect((await b).status).toBe(200);
  });

  it('takes the settings of fleet, worker and pair from the log: a pinned model is not evicted', async () => {
    await prime('chat-a');
    const set = (scope: string, patch: Record<string, unknown>) =>
      stand.log.append(
        streams.settings(scope),
        [
          {
            id: randomUUID(),
            event: { type: 'SettingsChanged', data: { patch, by: 'test' } },
            cause: { correlationId: 'test', causationId: 'test' },
          },
        ],
        'any',
      );
    const pin = async (pinned: true | null) => {
      const answer = await fetch(`${stand.url}/admin/settings/${stand.agent.id}~chat-a`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ values: { pinned } }),
      });
      expect(answer.status).toBe(200);
    };
    await pin(true);
    await set('fleet', { maxWaitSeconds: 2 });
    const refused = await eventually('the settings to hold', async () => {
      const answer = await chat('chat-b');
      return answer.status === 503 ? ((await answer.json()) as { error: { message: string } }) : undefined;
    });
    expect(refused.error.message).toMatch(/within 2 s: .*chat-a holds .* and is pinned/);
    await pin(null);
    await set('fleet', { maxWaitSeconds: null });
    expect((await chat('chat-b')).status).toBe(200);
    const revisions = (await decisions('chat-b')).at(-1)?.basedOn.map(({ stream }) => stream);
    expect(revisions).toContain('settings-fleet');
    // In the worker's stream as well, so that a decision made without it does not stand.
    const pins: unknown[] = [];
    for await (const { event } of stand.log.readForwards<WorkerEvent>(streams.worker(stand.agent.id)))
      if (event.type === 'PinSet') pins.push([event.data.modelKey, event.data.pinned]);
    expect(pins).toEqual([
      ['chat-a', true],
      ['chat-a', false],
    ]);
  });

  it('keeps a refusal in the log with its working, and a repetition of it is counted and not written', async () => {
    // The last is another refusal: when it is written, a second one of the first would be there too.
    const asked = ['chat-b@ctx=100000', 'chat-b@ctx=100000', 'chat-b@ctx=200000'];
    const answers: Response[] = [];
    for (const model of asked) answers.push(await chat(model));
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400]);
    const { error } = (await answers[0]!.json()) as { error: { code: string; message: string } };
    const written = await eventually('the last refusal', async () => {
      const found: WorkerEventData<'PlacementRefused'>[] = [];
      for await (const { event } of stand.log.readForwards<WorkerEvent>(streams.worker(stand.agent.id)))
        if (event.type === 'PlacementRefused' && event.data.modelKey === 'chat-b') found.push(event.data);
      return found.some(({ ask }) => ask.context === 200_000) ? found : undefined;
    });
    const [refusal, ...more] = written.filter(({ ask }) => ask.context === 100_000);
    expect(more).toEqual([]);
    expect(refusal).toMatchObject({
      modelKey: 'chat-b',
      code: error.code,
      count: 1,
      cause: { kind: 'call' },
    });
    expect(refusal?.reason).not.toBe('');
    expect(refusal?.basedOn.map(({ stream }) => stream)).toContain(streams.worker(stand.agent.id));
  });

  it('tells a streaming caller how far its load is, and keeps the load when the caller leaves', async () => {
    await prime('chat-a');
    const { open, opened } = gate();
    loading = () => opened;
    const socket = new RawSocket(stand.port);
    socket.send(post(CHAT, JSON.stringify({ model: 'chat-b', stream: true, messages: [] })));
    const heard = await socket.hears(/: loading chat-b/);
    expect(heard).toContain('HTTP/1.1 200 OK');
    expect(heard).not.toContain('data:');
    const id = /x-berth-call: (\S+)/.exec(heard)![1]!;
    socket.socket.destroy();
    expect(await stand.finished('chat-b', id)).toMatchObject({ outcome: 'abandoned', attempts: 0 });
    const before = (await decisions('chat-b')).length;
    open();
    expect((await chat('chat-b')).status).toBe(200);
    expect((await decisions('chat-b')).length).toBe(before);
  });

  it('keeps a stream of /v1/messages by pings with data while its model loads, and the answer follows', async () => {
    await prime('chat-b');
    const { open, opened } = gate();
    loading = () => opened;
    const socket = new RawSocket(stand.port);
    const body = {
      model: 'chat-a',
      stream: true,
      max_tokens: 9,
      messages: [{ role: 'user', content: 'hi' }],
    };
    socket.send(post('/v1/messages', JSON.stringify(body)));
    const ollama = new RawSocket(stand.port);
    ollama.send(post('/api/chat', JSON.stringify(body)));
    const heard = await socket.hears('event: ping\ndata: {"type":"ping"}\n\n');
    expect(heard).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(heard).not.toContain('message_start');
    // Ollama's lines have no comments: nothing is said until there is something to say.
    expect(ollama.heard).toBe('');
    open();
    const all = await socket.hears('event: message_stop');
    expect(all).not.toMatch(/^:/m);
    socket.socket.destroy();
    expect(await ollama.hears('"done":true')).toMatch(/^HTTP\/1\.1 200 [^]*application\/x-ndjson/);
    ollama.socket.destroy();
  });

  it('says at the deadline what it waited for', async () => {
    await prime('chat-a');
    engine.script = () => undefined;
    const held = new AbortController();
    const a = fetch(`${stand.url}${CHAT}`, {
      method: 'POST',
      body: JSON.stringify({ model: 'chat-a', messages: [] }),
      signal: held.signal,
    }).catch(() => undefined);
    await eventually('the call at the engine', () => engine.requests[0]);
    const b = await chat('chat-b', { berth: { maxWaitSeconds: 1 } });
    held.abort();
    await a;
    expect(b.status).toBe(503);
    expect(Number(b.headers.get('retry-after'))).toBeGreaterThan(0);
    const { error } = (await b.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('placement_timeout');
    expect(error.message).toMatch(/1(\.0)? s: .*(RAM|cores)/);
  });

  it('tries a call once more after its engine died before the first byte', async () => {
    await prime('chat-a');
    const first = engine;
    engine = await new ScriptedEngine().start();
    const end = await eventually('the resident', async () => (await decisions('chat-a')).at(-1));
    first.die();
    const call = chat('chat-a');
    await eventually('the end of the first try', () =>
      said.find((line) => line.includes('failed before its first byte') && line.includes(end.residentId)),
    );
    await stand.agent.fact({
      type: 'ResidentCrashed',
      data: { residentId: end.residentId, signal: 'SIGKILL', during: 'call', logTail: '' },
    });
    const response = await call;
    expect(response.status).toBe(200);
    const finished = await stand.finished('chat-a', response.headers.get('x-berth-call')!);
    expect(finished.attempts).toBeGreaterThan(1);
    expect(finished.residentId).not.toBe(end.residentId);
  });

  it('drains a resident that the agent asks for, though no decision names it', async () => {
    await prime('chat-a');
    const { residentId } = (await decisions('chat-a')).at(-1)!;
    const before = stand.agent.drained.length;
    // As the agent does it: the fact first, then the question on the line.
    await stand.agent.fact({ type: 'EvictionStarted', data: { residentId, reason: 'idle' } });
    stand.agent.say({ drainAsked: { residentId } });
    await eventually('the drain', () => (stand.agent.drained.length > before ? true : undefined));
    expect(stand.agent.drained.at(-1)).toBe(residentId);
    await stand.agent.fact({
      type: 'ResidentEvicted',
      data: { residentId, reason: 'idle', freed: [], seconds: 0 },
    });
    expect((await chat('chat-a')).status).toBe(200);
  });

  it('serves residents while the event log is away, refuses what needs a placement, and loses no call', async () => {
    await prime('chat-a');
    await stand.node.kill9();
    const a = await chat('chat-a');
    expect(a.status).toBe(200);
    const b = await chat('chat-b');
    expect(b.status).toBe(503);
    const { error } = (await b.json()) as { error: { code: string } };
    expect(error.code).toBe('event_log_unavailable');
    await stand.node.restart();
    expect(await stand.finished('chat-a', a.headers.get('x-berth-call')!)).toMatchObject({
      outcome: 'completed',
    });
    await eventually('a placement', async () => ((await chat('chat-b')).status === 200 ? true : undefined));
  });

  it('closes the calls of an api that is gone', async () => {
    const lost = apiId('0190a0a0-0000-7000-8000-000000000001');
    const open = callId('0190a0a0-0000-7000-8000-000000000002');
    const cause = { correlationId: open, causationId: open };
    const started: FleetEvent = {
      type: 'ApiStarted',
      data: {
        apiId: lost,
        host: hostname(),
        bootId: bootId(),
        pid: 2 ** 22 + 1,
        agentLine: '127.0.0.1:1',
        version: '0',
        startedAt: new Date().toISOString(),
      },
    };
    await stand.log.append(streams.apis, [{ id: lost, event: started, cause }], 'any');
    await stand.log.append(
      'calls-chat-a',
      [
        {
          id: open,
          event: {
            type: 'CallStarted',
            data: {
              callId: open,
              apiId: lost,
              modelKey: (await decisions('chat-a'))[0]!.modelKey,
              endpoint: CHAT,
              background: false,
              stream: false,
              promptBytes: 1,
              receivedAt: new Date().toISOString(),
            },
          },
          cause,
        },
      ],
      'any',
    );
    const other = await stand.startAnother();
    expect(await stand.finished('chat-a', open)).toMatchObject({ outcome: 'abandoned', apiId: lost });
    await eventually('ApiLost', async () => {
      for await (const { event } of stand.log.readForwards<FleetEvent>(streams.apis)) {
        if (event.type === 'ApiLost' && event.data.apiId === lost) return true;
      }
      return undefined;
    });
    const url = String(other.details['url']);
    const answer = await fetch(`${url}${CHAT}`, {
      method: 'POST',
      body: JSON.stringify({ model: 'chat-b', messages: [] }),
    });
    expect(answer.status).toBe(200);
  });

  it('gives every call that started exactly one end', async () => {
    for (const key of ['chat-a', 'chat-b']) {
      await eventually(`the ends of ${key}`, async () => {
        const events = await stand.callEvents(key);
        const started = events.filter((e) => e.type === 'CallStarted').map((e) => e.data.callId);
        const finished = events.filter((e) => e.type === 'CallFinished').map((e) => e.data.callId);
        expect(new Set(finished).size).toBe(finished.length);
        return started.length > 0 && started.every((id) => finished.includes(id)) ? true : undefined;
      });
    }
  });
});
