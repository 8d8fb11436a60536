import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { NestFactory } from '@nestjs/core';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { berthError } from '#domain/errors.js';
import type { EventLog } from '#events/event-log.js';
import { MemoryLog } from '#events/testing/memory-log.js';
import type { StateAt, StorageReport } from '#domain/wire/index.js';
import { SAMPLES } from '#events/testing/samples.js';
import type { ViewsDb } from '#schema/connect.js';
import { AdminModule } from '../../../apps/api/src/admin/admin.module.js';
import type { AccessPolicy } from '../../../apps/api/src/admin/access/access-policy.js';
import { viewsPosition } from '../../../apps/api/src/admin/commands/wait.interceptor.js';
import { FRAMEWORK_PROBLEMS } from '../../../apps/api/src/admin/problem/problem.filter.js';
import { Fleet } from '../../../apps/api/src/fleet/fleet.js';
import { LiveHub } from '../../../apps/api/src/live/socket/live-hub.js';
import { MOST_DIFFERENCES, Replays } from '../../../apps/api/src/replay/replays.js';
import type { ReplayListener } from '../../../apps/api/src/replay/replay-process.js';
import { WhatIfs } from '../../../apps/api/src/what-if/what-ifs.js';
import { OperatorBook } from '../../../apps/api/src/operator/operator-book.js';
import { takeTurn } from '../../../apps/projector/src/replay/beside.js';
import { Projector } from '../../../apps/projector/src/run/projector.js';
import type { Drawn } from '../../../apps/projector/src/testing/random-log.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';
import { appendDrawn, listeningLog, openTestViews, until } from '../../support/views.js';

const WORKER = '01979d3e-0000-7000-8000-000000000001';
const MODEL = 'owner/model';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown> & { items?: Record<string, unknown>[]; next?: string };
}

describe('the management lists', () => {
  let postgres: TestPostgres;
  let views: ViewsDb;
  let app: NestFastifyApplication;
  let address: string;
  let projector: Projector;
  const events = new MemoryLog();
  const open: AccessPolicy['management'] = () => ({ ok: true, value: { rights: 'admin' } });
  let management = open;

  const get = async (path: string): Promise<Answer> => {
    const response = await fetch(`${address}${path}`);
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Answer['body'],
    };
  };
  const post = async (path: string, body: object): Promise<Answer> => {
    const response = await fetch(`${address}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Answer['body'],
    };
  };
  let replay: ReplayListener | undefined;
  let clock = 0;
  let serial = 0;
  const write = async (...written: readonly Pick<Drawn, 'stream' | 'event'>[]) => {
    const drawn = written.map(({ stream, event }): Drawn => {
      serial += 1;
      return {
        stream,
        event,
        id: `00000000-0000-7000-8000-${String(serial).padStart(12, '0')}`,
        at: new Date(Date.UTC(2026, 0, 1) + (clock += 1000)).toISOString(),
      };
    });
    await appendDrawn(events, drawn);
    const end = (await events.endPosition())!.commit.toString();
    await until('the views have it', async () => {
      const row = await views
        .withSchema('views')
        .selectFrom('checkpoints')
        .select('commit_position')
        .executeTakeFirst();
      return row?.commit_position === end;
    });
  };
  const on = (
    stream: string,
    type: keyof typeof SAMPLES,
    change: object = {},
  ): Pick<Drawn, 'stream' | 'event'> => ({
    stream,
    event: { type, data: { ...SAMPLES[type], ...change } } as never,
  });
  const worker = `worker-${WORKER}`;

  beforeAll(async () => {
    postgres = await startPostgres();
    const url = await postgres.createDatabase();
    views = openTestViews(url);
    projector = new Projector({ databaseUrl: url, schema: 'views', events, log: listeningLog() });
    void projector.run();
    await projector.following;
    // No command is given here.
    const log = {} as EventLog;
    const fleet = new Fleet(events);
    await fleet.start();
    const hub = new LiveHub({ log: events, fleet, logger: { error: () => undefined } });
    const module = AdminModule.with({
      views,
      access: { management: (visitor) => management(visitor) },
      fleet,
      events,
      hub,
      inputFor: () => Promise.reject(new Error('no decision is asked for here')),
      operator: { book: new OperatorBook(log), isConnected: () => false, waitingFor: () => 0 },
      whatIfs: new WhatIfs({ eventstoreUrl: '', now: Date.now }),
      replays: new Replays({
        start: (_mode, listener) => ((replay = listener), { stop: () => undefined }),
        now: Date.now,
      }),
      waitMostMs: 300,
      log: { error: (fields, message) => process.stderr.write(`${message} ${JSON.stringify(fields)}\n`) },
    });
    Logger.overrideLogger(false);
    app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(FRAMEWORK_PROBLEMS));
    await app.listen(0, '127.0.0.1');
    address = await app.getUrl();
  });
  afterAll(async () => {
    await app.close();
    await projector.stop();
    await views.destroy();
    await postgres.stop();
  });

  it('are empty at first', async () => {
    for (const list of ['workers', 'residents', 'models', 'calls', 'decisions', 'evictions']) {
      expect([list, (await get(`/admin/${list}`)).body]).toEqual([list, { items: [] }]);
    }
  });

  it('follow a model from the disk to a served call and its explanation', async () => {
    await write(
      on(worker, 'WorkerRegistered'),
      on(worker, 'CapacityMeasured'),
      on(worker, 'LimitSet'),
      on(worker, 'ForeignUseChanged'),
      on(`catalog-${WORKER}`, 'ModelFound'),
      on(`calls-${MODEL}`, 'CallStarted', { receivedAt: '2026-01-01T00:00:05.000Z' }),
    );
    const running = await get('/admin/calls?outcome=running');
    expect(running.body.items).toEqual([expect.objectContaining({ state: 'running', modelKey: MODEL })]);
    const callId = running.body.items![0]!['callId'] as string;
    expect((await get(`/admin/calls/${callId}/explain`)).body).toMatchObject({
      situation: 'running',
      text: expect.stringMatching(/still running[^]*no end yet, and no decision/) as string,
    });
    await write(on(worker, 'PlacementDecided'), on(worker, 'LoadStarted'));
    expect((await get(`/admin/residents`)).body.items).toEqual([
      expect.objectContaining({
        phase: 'loading',
        memory: [{ deviceId: 'ram', bytes: 1000, basis: 'planned' }],
      }),
    ]);
    await write(
      on(worker, 'ResidentReady', { loadedAt: '2026-01-01T00:00:10.500Z' }),
      on(`history-${WORKER}~${MODEL}`, 'LoadMeasured'),
      on(`calls-${MODEL}`, 'CallFinished', {
        stamps: {
          receivedAt: '2026-01-01T00:00:05.000Z',
          forwardedAt: '2026-01-01T00:00:11.000Z',
          finishedAt: '2026-01-01T00:00:12.000Z',
        },
      }),
    );
    const { body } = await get('/admin/workers');
    expect(body.items).toEqual([
      expect.objectContaining({
        workerId: WORKER,
        name: 'desk',
        lost: false,
        devices: [
          expect.objectContaining({
            deviceId: 'ram',
            totalBytes: 64_000_000_000,
            limitBytes: 8_000_000_000,
            residentBytes: 1234,
            foreignBytes: 134_217_728,
          }),
          expect.objectContaining({ deviceId: 'GPU-5a1e', kind: 'cuda', residentBytes: 0 }),
        ],
      }),
    ]);
    const explained = await get(`/admin/calls/${callId}/explain`);
    expect(explained.body).toMatchObject({
      situation: 'placed',
      decision: { state: 'ready', working: { event: { modelKey: MODEL } } },
      resident: { phase: 'ready' },
      load: { seconds: 2.5, measuredBytes: 1234 },
    });
    const text = explained.body['text'] as string;
    expect(text.split('\n').every((line) => line.length <= 100)).toBe(true);
    expect(text).toMatch(/load +2\.5 s +\[1\] +2\.5 s +\[3\]/);
    expect(text).toMatch(/weights +1000 B +measured \[e1\]/);
  });

  it('say of a call that found the model resident that no decision was needed', async () => {
    const later = { callId: 'call-2', receivedAt: '2026-01-01T01:00:00.000Z' };
    await write(
      on(`calls-${MODEL}`, 'CallStarted', later),
      on(`calls-${MODEL}`, 'CallFinished', {
        callId: 'call-2',
        stamps: { receivedAt: later.receivedAt, finishedAt: '2026-01-01T01:00:01.000Z' },
      }),
    );
    const { body } = await get('/admin/calls/call-2/explain');
    expect(body['situation']).toBe('reused');
    expect(body['decisions']).toEqual([]);
    // What the resident's own load took is not told as if it were this call's.
    const text = body['text'] as string;
    expect(text).toMatch(/No decision was needed and nothing was loaded:[^]*ready since 2026/);
    expect(text).toMatch(/The decision that made the resident[^]*Load owner\/model/);
    expect(text).not.toMatch(/^ +load /m);
  });

  it('find a model whose key holds a slash, encoded and as it is', async () => {
    for (const path of ['/admin/models/owner%2Fmodel', '/admin/models/owner/model']) {
      expect((await get(path)).body.items).toEqual([
        expect.objectContaining({
          modelKey: MODEL,
          residents: [expect.objectContaining({ phase: 'ready' })],
          lastLoad: expect.objectContaining({ seconds: 2.5 }) as unknown,
          artifacts: [
            expect.objectContaining({ label: 'Q4_K_M', bytes: 1000, complete: true }),
            expect.objectContaining({ label: 'F16', broken: 'truncated' }),
          ],
        }),
      ]);
    }
    for (const path of [
      `/admin/history/${WORKER}/owner%2Fmodel`,
      `/admin/history/${WORKER}/owner/model?of=loads`,
    ]) {
      expect((await get(path)).body.items).toEqual([
        expect.objectContaining({ kind: 'measured', measuredBytes: 1234, predictedBytes: 1234 }),
      ]);
    }
  });

  it('show an eviction with what it freed', async () => {
    const residentId = SAMPLES.PlacementDecided.residentId;
    await write(on(worker, 'EvictionStarted', { residentId, reason: 'idle' }));
    expect((await get('/admin/residents')).body.items).toEqual([
      expect.objectContaining({
        leaving: expect.objectContaining({ reason: 'idle', started: true }) as unknown,
      }),
    ]);
    await write(on(worker, 'ResidentEvicted', { residentId, reason: 'idle' }));
    expect((await get('/admin/evictions')).body.items).toEqual([
      expect.objectContaining({ residentId, state: 'done', freedBytes: 900, modelKey: MODEL }),
    ]);
    expect((await get('/admin/residents')).body.items).toEqual([]);
    expect((await get('/admin/residents?state=ended')).body.items).toEqual([
      expect.objectContaining({ endReason: 'evicted' }),
    ]);
  });

  it('page without loss or repeat, while rows are added', async () => {
    const start = (n: number) =>
      on('calls-short', 'CallStarted', { callId: `paged-${String(n)}`, modelKey: 'short' });
    await write(...Array.from({ length: 25 }, (_each, n) => start(n)));
    const seen: unknown[] = [];
    let next: string | undefined;
    do {
      const page = await get(`/admin/calls?model=short&limit=7${next ? `&after=${next}` : ''}`);
      seen.push(...page.body.items!.map((item) => item['callId']));
      next = page.body.next;
      if (seen.length === 7) await write(start(99));
    } while (next);
    expect(seen).toEqual(Array.from({ length: 25 }, (_each, n) => `paged-${String(24 - n)}`));
  });

  it('answer with problem documents: unknown ids, malformed queries, unknown paths', async () => {
    const missing = await get('/admin/calls/nothing/explain');
    expect(missing.status).toBe(404);
    expect(missing.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(missing.body).toMatchObject({
      type: 'urn:berth:error:not_found',
      title: 'Not found',
      status: 404,
      code: 'not_found',
      instance: '/admin/calls/nothing/explain',
    });
    for (const [path, param] of [
      ['/admin/calls?limit=0', 'limit'],
      ['/admin/calls?limit=9999', 'limit'],
      ['/admin/calls?outcome=odd', 'outcome'],
      ['/admin/calls?since=yesterday', 'since'],
      ['/admin/calls?nonsense=1', 'nonsense'],
      ['/admin/calls?after=!!', 'after'],
      ['/admin/models?after=WyJvbmUiXQ', 'after'],
    ]) {
      const { status, body } = await get(path!);
      expect([path, status, body['code'], body['param']]).toEqual([path, 400, 'invalid_request', param]);
    }
    expect((await get('/admin/nowhere')).body).toMatchObject({ status: 404, code: 'not_found' });
    const url = await get('/admin/models/%E0%A4%A');
    expect(url.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(url.body).toMatchObject({
      status: 400,
      code: 'invalid_request',
      instance: '/admin/models/%E0%A4%A',
    });
  });

  it('refuse what no row can be asked with: a character that no text has, a cursor that somebody made', async () => {
    const forged = (...parts: readonly string[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
    for (const path of [
      '/admin/calls?model=%00',
      '/admin/decisions/%00',
      '/admin/residents?worker=a%00b',
      `/admin/usage?by=hour,model&after=${forged('then', 'm', '')}`,
      `/admin/usage?by=day&after=${forged('2026-02-31', '', '')}`,
      `/admin/calls?after=${forged('9'.repeat(300))}`,
      `/admin/accuracy?after=${forged('a\u0000', 'b', 'c')}`,
    ]) {
      const { status, body } = await get(path);
      expect([path, status, body['code']]).toEqual([path, 400, 'invalid_request']);
    }
  });

  it('wait for the position that a command answered, and say how far they are when it does not come', async () => {
    const { commit_position: folded } = await viewsPosition(
      views.withSchema('views'),
    ).executeTakeFirstOrThrow();
    expect((await get(`/admin/calls?wait=${folded}`)).status).toBe(200);
    const behind = await get(`/admin/calls?wait=${BigInt(folded ?? 0) + 1n}`);
    expect(behind.status).toBe(504);
    expect(behind.body).toMatchObject({ code: 'views_behind', position: folded, retryAfterSeconds: 2 });
    expect((await get('/admin/calls?wait=soon')).body).toMatchObject({ status: 400, param: 'wait' });
  });

  it('answer only whom the policy lets in', async () => {
    management = ({ peer }) => ({
      ok: false,
      error: { error: berthError('invalid_api_key', `not for ${String(peer)}`), delayMs: 0 },
    });
    try {
      const refused = await get('/admin/calls');
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toBe('Bearer');
      expect(refused.body).toMatchObject({ code: 'invalid_api_key', detail: 'not for 127.0.0.1' });
    } finally {
      management = open;
    }
  });

  it('are described by a document that has every route which Nest serves, and by a page', async () => {
    const served = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const described = (await get('/admin/openapi.json')).body as unknown as OpenAPIObject;
    const routes = ({ paths }: Pick<OpenAPIObject, 'paths'>) =>
      Object.entries(paths)
        .flatMap(([path, of]) =>
          Object.keys(of).map((method) => `${method} ${path.replace(/\{\w+\}$|\*\w*$|\{\*\w+\}$/, 'X')}`),
        )
        .sort();
    // The queue is a route of the api's own module.
    expect(routes(described).filter((route) => route !== 'get /admin/queue')).toEqual(routes(served));
    const page = await fetch(`${address}/admin/docs`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  });

  it('sum usage by model, key, hour and day, page by page, and each day in one row', async () => {
    const call = (n: number, receivedAt: string, model: string, keyId: string) => {
      const callId = `00000005-0000-7000-8000-0000000009${String(n).padStart(2, '0')}`;
      const stamps = { ...SAMPLES.CallFinished.stamps, receivedAt };
      return [
        on(`calls-${model}`, 'CallStarted', { callId, modelKey: model, keyId, receivedAt }),
        on(`calls-${model}`, 'CallFinished', { callId, modelKey: model, stamps }),
      ];
    };
    await write(
      ...call(1, '2026-01-05T10:10:00.000Z', 'usage/a', 'k1'),
      ...call(2, '2026-01-05T10:50:00.000Z', 'usage/a', 'k2'),
      ...call(3, '2026-01-06T23:59:00.000Z', 'usage/a', 'k1'),
      ...call(4, '2026-01-06T23:59:59.000Z', 'usage/b', 'k1'),
      on('key-k1', 'KeyIssued', { keyId: 'k1', name: 'laptop' }),
    );
    const range = 'since=2026-01-05T00:00:00Z&until=2026-01-08T00:00:00Z';
    const by = async (groups: string, more = '') =>
      (await get(`/admin/usage?by=${groups}&${range}${more}`)).body;
    expect((await by('day')).items).toMatchObject([
      { time: '2026-01-06T00:00:00.000Z', calls: 2, completed: 2 },
      {
        time: '2026-01-05T00:00:00.000Z',
        calls: 2,
        promptTokens: 2 * (SAMPLES.CallFinished.tokens.prompt ?? 0),
      },
    ]);
    expect((await by('model,key')).items).toMatchObject([
      { modelKey: 'usage/a', keyId: 'k1', keyName: 'laptop', calls: 2 },
      { modelKey: 'usage/a', keyId: 'k2', calls: 1 },
      { modelKey: 'usage/b', keyId: 'k1', calls: 1 },
    ]);
    const seen: unknown[] = [];
    let after: string | undefined;
    do {
      const page = await by('hour,model,key', `&limit=1${after === undefined ? '' : `&after=${after}`}`);
      seen.push(...(page.items ?? []).map((row) => [row['time'], row['modelKey'], row['keyId']]));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual([
      ['2026-01-06T23:00:00.000Z', 'usage/a', 'k1'],
      ['2026-01-06T23:00:00.000Z', 'usage/b', 'k1'],
      ['2026-01-05T10:00:00.000Z', 'usage/a', 'k1'],
      ['2026-01-05T10:00:00.000Z', 'usage/a', 'k2'],
    ]);
    const daily = await get('/admin/daily?limit=3&after=2026-01-08T00:00:00Z');
    expect(daily.body.items?.slice(0, 2)).toMatchObject([
      { day: '2026-01-06T00:00:00.000Z', calls: 2 },
      { day: '2026-01-05T00:00:00.000Z', calls: 2, loads: 0 },
    ]);
    expect(daily.body.next).toBe('2026-01-05T00:00:00.000Z');
    expect((await get('/admin/usage?by=hour,day')).body['detail']).toContain('by hour or by day');
  });

  it('show what lies on drives, transfers, actions, cores, events, and what stood at a moment of the past', async () => {
    await write(
      on(`pull-${WORKER}`, 'PullRequested', { pullId: 'p1', source: 'owner/repo' }),
      on(`pull-${WORKER}`, 'FilePulled', { pullId: 'p1' }),
      on(`operator-${WORKER}`, 'OperatorActionRequested', { actionId: 'a1', action: 'evict', target: 'r' }),
      on(`operator-${WORKER}`, 'OperatorActionFinished', {
        actionId: 'a1',
        state: 'failed',
        result: 'It was busy.',
      }),
    );
    const storage = (await get('/admin/storage')).body as unknown as StorageReport;
    expect(storage.artifacts.length).toBeGreaterThan(0);
    expect(storage.totalBytes).toBe(storage.artifacts.reduce((sum, { bytes }) => sum + bytes, 0));
    const folder = storage.folders.find(({ workerId }) => workerId === WORKER);
    const own = storage.artifacts.filter((one) => one.workerId === WORKER && one.root === 'models');
    const [drive] = SAMPLES.CapacityMeasured.drives;
    expect(folder).toMatchObject({
      usedBytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
      driveBytes: drive?.totalBytes,
      freeBytes: drive?.freeBytes,
    });
    // The sample's drive is smaller than what is always kept free.
    expect([folder?.limitBytes, folder?.roomBytes]).toEqual([undefined, 0]);
    expect((await get('/admin/pulls?state=running')).body.items).toMatchObject([
      { pullId: 'p1', source: 'owner/repo', files: [{ bytes: SAMPLES.FilePulled.bytes }] },
    ]);
    expect((await get('/admin/operator/actions/a1')).body).toMatchObject({
      state: 'failed',
      result: 'It was busy.',
    });
    expect((await get('/admin/operator/actions?state=done')).body).toEqual({ items: [] });
    const first = await get(`/admin/events?stream=${worker}&limit=2`);
    expect(first.body.items?.map((event) => [event['revision'], event['type']])).toEqual([
      [0, 'WorkerRegistered'],
      [1, 'CapacityMeasured'],
    ]);
    const ready = await get(`/admin/events?stream=${worker}&type=ResidentReady&after=${first.body.next}`);
    const [event] = ready.body.items ?? [];
    const { residentId } = event?.['data'] as { residentId: string };
    const before = BigInt(String(event?.['position'])) - 1n;
    const phaseAt = async (at: string) => {
      const state = (await get(`/admin/state?at=${at}`)).body as unknown as StateAt;
      return state.residents.find((resident) => resident.residentId === residentId)?.phase;
    };
    expect(await phaseAt(String(event?.['position']))).toBe('ready');
    expect(await phaseAt(String(before))).toBe('loading');
    expect(await phaseAt(String(event?.['at']))).toBe('ready');
    expect(await phaseAt('0')).toBeUndefined();
    expect((await get('/admin/state?at=yesterday')).status).toBe(400);
    expect((await get('/admin/cores')).body.items?.length).toBeGreaterThan(0);
  });

  it('tell machines what changed after a cursor, and of nothing when nothing happened', async () => {
    const rows: string[] = [];
    let since = '0';
    for (let more = true; more;) {
      const page = await get(`/admin/telemetry?table=calls&since=${since}&limit=7`);
      rows.push(...(page.body.items ?? []).map((row) => String(row['callId'])));
      since = String(page.body['position']);
      more = page.body['more'] === true;
    }
    const started = events.all.filter((e) => e.event.type === 'CallStarted');
    expect(new Set(rows)).toEqual(new Set(started.map((e) => (e.event.data as { callId: string }).callId)));
    expect((await get(`/admin/telemetry?table=calls&since=${since}`)).body).toMatchObject({
      items: [],
      more: false,
    });
    const now = String((await get('/admin/telemetry/state')).body['position']);
    expect((await get(`/admin/telemetry/state?since=${now}&seconds=0.2`)).body).toEqual({
      position: now,
      changed: false,
    });
    // Readings are no events that count: the counter does not move on them.
    await appendDrawn(events, [
      {
        ...on(`readings-${WORKER}`, 'DevicesRead'),
        id: '00000000-0000-7000-8000-00000000aaaa',
        at: '2026-01-01T00:00:00Z',
      },
    ]);
    expect((await get(`/admin/telemetry/state?since=${now}&seconds=0.2`)).body).toMatchObject({
      changed: false,
    });
    const waiting = get(`/admin/telemetry/state?since=${now}&seconds=30`);
    await write(on(worker, 'ForeignUseChanged', { bytes: 5 * 134_217_728 }));
    expect((await waiting).body).toMatchObject({ changed: true });
  });

  it('replay one at a time, and tell how far it is and what differs, row by row', async () => {
    const { body: begun, status } = await post('/admin/replay', {});
    expect([status, begun['mode'], begun['state']]).toEqual([202, 'verify', 'running']);
    const one = async () => (await get(`/admin/replay/${String(begun['id'])}`)).body;
    const progress = { events: 4000, share: 0.4, perSecond: 8000, leftSeconds: 0.8 };
    replay?.onLine({ step: 'fold', ...progress });
    replay?.onLine({ progress });
    expect(await one()).toMatchObject({ step: 'fold', progress, differencesFound: 0 });
    const again = await post('/admin/replay', { mode: 'rebuild' });
    expect([again.status, again.body['code']]).toEqual([409, 'conflict']);
    expect(again.body['detail']).toContain(String(begun['id']));
    const difference = { table: 'calls', key: { call_id: 'c' }, kind: 'missing' } as const;
    for (let n = 0; n < MOST_DIFFERENCES + 1; n += 1) replay?.onLine({ difference });
    replay?.onLine({
      verified: { events: 9000, rows: 700, differences: MOST_DIFFERENCES + 1, position: '7' },
    });
    replay?.onEnd(undefined);
    const ended = await one();
    expect(ended).toMatchObject({ state: 'done', rows: 700, position: '7', differencesFound: 501 });
    expect(ended['differences']).toHaveLength(MOST_DIFFERENCES);
    expect(ended['step']).toBeUndefined();
    expect((await get('/admin/replay')).body.items?.[0]).not.toHaveProperty('differences');
    expect((await post('/admin/replay', { mode: 'guess' })).body).toMatchObject({
      status: 400,
      param: 'mode',
    });
    expect((await get('/admin/replay/nothing')).status).toBe(404);
    // A command line, or another api, that holds the turn.
    await views.connection().execute(async (held) => {
      await takeTurn(held, 'views');
      expect((await post('/admin/replay', {})).body).toMatchObject({ status: 409, code: 'conflict' });
      await sql`select pg_advisory_unlock_all()`.execute(held);
    });
  });

  it('say that the views are away, and answer again when they are back', async () => {
    await postgres.halt();
    const away = await get('/admin/calls');
    expect(away.status).toBe(503);
    expect(away.headers.get('retry-after')).toBe('2');
    expect(away.body).toMatchObject({ code: 'views_unavailable', retryAfterSeconds: 2 });
    await postgres.resume();
    await until('the list is back', async () => (await get('/admin/calls')).status === 200);
  });

  it('say so when the projector has not prepared the views', async () => {
    await views.schema.dropSchema('views').cascade().execute();
    const { status, body } = await get('/admin/calls');
    expect([status, body['code']]).toEqual([503, 'views_unavailable']);
    expect(body['detail']).toMatch(/projector has not prepared/);
  });
});
