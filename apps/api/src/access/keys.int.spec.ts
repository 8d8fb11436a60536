import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { streams } from '#events/streams.js';
import { ScriptedEngine } from '../testing/scripted-engine.js';
import { eventually, type Stand, startStand } from '../testing/stand.js';

const MODEL = 'chat-a';
/** Through a proxy that nobody listed: as far outside as a test on one machine can be. */
const OUTSIDE = { 'x-forwarded-for': '8.8.8.8' };
const PAGE = 'https://chat.example';

interface Created {
  readonly keyId: string;
  readonly key: string;
  readonly position: string;
  readonly revision: number;
}

describe('keys, settings and pages at a running front door', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  const lines: string[] = [];
  const shown: string[] = [];

  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({
      models: [MODEL, 'chat-b'],
      portOf: () => engine.port,
      onLogLine: (line) => lines.push(line),
    });
  });
  afterAll(async () => {
    await stand.stop();
    engine.die();
  });

  const send = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${stand.url}${path}`, {
      method,
      headers: { ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    const read = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    return { status: response.status, headers: response.headers, body: read };
  };
  const call = (headers: Record<string, string> = {}, more: object = {}) =>
    send('POST', '/v1/chat/completions', { model: MODEL, messages: [], ...more }, headers);
  const create = async (asked: object, headers: Record<string, string> = {}): Promise<Created> => {
    const { status, body } = await send('POST', '/admin/keys', asked, headers);
    expect(status).toBe(201);
    const created = body as unknown as Created;
    shown.push(created.key);
    return created;
  };
  const bearer = (key: string) => ({ ...OUTSIDE, authorization: `Bearer ${key}` });
  const codeOf = ({ body }: { body: Record<string, unknown> }) =>
    (body['error'] as { code?: string } | undefined)?.code ?? body['code'];

  it('a key opens the door from outside as soon as it is shown, is named in the call’s event, and stops at once', async () => {
    expect(codeOf(await call(OUTSIDE))).toBe('invalid_api_key');
    const { keyId, key, position, revision } = await create({ name: 'laptop' });
    expect(position).toMatch(/^\d+$/);
    expect(revision).toBe(0);
    expect((await call(bearer(key))).status).toBe(200);
    const started = await eventually('the call under its key', async () =>
      (await stand.callEvents(MODEL)).find((e) => e.type === 'CallStarted' && e.data.keyId === keyId),
    );
    expect(started.data).not.toHaveProperty('key');
    const revoked = await send('DELETE', `/admin/keys/${keyId}`);
    expect(revoked).toMatchObject({ status: 200, body: { keyId, revision: 1 } });
    expect(codeOf(await call(bearer(key)))).toBe('invalid_api_key');
    const again = await send('POST', `/admin/keys/${keyId}/revoke`);
    expect(again).toMatchObject({ status: 200, body: { keyId, revision: 1 } });
    expect(again.body).not.toHaveProperty('position');
    expect((await send('DELETE', '/admin/keys/none')).status).toBe(404);
  });

  it('another api on the log honours a key and its revocation', async () => {
    const other = await stand.startAnother();
    const url = String(other.details['url']);
    const { keyId, key } = await create({ name: 'shared' });
    const status = async () => (await fetch(`${url}/v1/models`, { headers: bearer(key) })).status;
    await eventually('the key at the other api', async () => ((await status()) === 200 ? true : undefined));
    await send('DELETE', `/admin/keys/${keyId}`);
    await eventually('its end at the other api', async () => ((await status()) === 401 ? true : undefined));
  });

  it('keys for calls do not manage; keys of scope admin do; a key of some models opens those', async () => {
    const use = await create({ name: 'calls', models: ['chat-b'] });
    const admin = await create({ name: 'desk', scope: 'admin', expiresAt: '2999-01-01T00:00:00Z' });
    expect(await send('GET', '/admin/queue', undefined, OUTSIDE)).toMatchObject({ status: 401 });
    expect(codeOf(await send('GET', '/admin/queue', undefined, bearer(use.key)))).toBe('forbidden');
    expect(await send('GET', '/admin/queue', undefined, bearer(admin.key))).toMatchObject({ status: 200 });
    await create({ name: 'made from outside' }, bearer(admin.key));
    const refused = await call(bearer(use.key));
    expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden']);
    expect((await call(bearer(use.key), { model: 'chat-b' })).status).toBe(200);
    const seen = async (path: string) =>
      (await fetch(`${stand.url}${path}`, { headers: bearer(use.key) })).text();
    for (const path of ['/v1/models', '/api/tags', '/api/ps', `/v1/models/${MODEL}`]) {
      const text = await seen(path);
      // What a key does not open it does not show either, nor as the nearest name to another.
      expect(text.replaceAll(`no model \\"${MODEL}\\"`, '')).not.toContain(MODEL);
    }
    expect(await seen('/v1/models')).toContain('"id":"chat-b"');
    expect(codeOf(await call(bearer(use.key), { model: 'chat-b', berth: { priority: 9 } }))).toBe(
      'forbidden',
    );
  });

  it('a client that names JSON in every head may leave the body out', async () => {
    const json = { 'content-type': 'application/json' };
    const { keyId } = await create({ name: 'hasty' });
    expect(await send('DELETE', `/admin/keys/${keyId}`, undefined, json)).toMatchObject({ status: 200 });
    expect(await send('POST', `/admin/keys/${keyId}/revoke`, undefined, json)).toMatchObject({ status: 200 });
    expect(await send('POST', '/admin/keys', undefined, json)).toMatchObject({ status: 400 });
  });

  it.each([
    [{}, 'name'],
    [{ name: 'x', scope: 'root' }, 'scope'],
    [{ name: 'x', expiresAt: 'soon' }, 'expiresAt'],
    [{ name: 'x', models: [] }, 'models'],
    [{ name: 'x', secret: 'mine' }, 'secret'],
  ])('a key asked for as %j is refused by the name of the field', async (asked, param) => {
    expect(await send('POST', '/admin/keys', asked)).toMatchObject({ status: 400, body: { param } });
  });

  it('settings show what is set, inherited and holds, and are changed under the revision that was read', async () => {
    const before = await send('GET', '/admin/settings');
    expect(before.body).toMatchObject({ scope: 'fleet', level: 'fleet' });
    expect((before.body['effective'] as Record<string, unknown>)['maxQueue']).toEqual({
      value: 512,
      from: 'default',
    });
    const revision = before.body['revision'] as number;
    const changed = await send('PATCH', '/admin/settings', {
      values: { maxQueue: 100, kvType: 'q8_0' },
      revision,
    });
    expect(changed.body).toMatchObject({ changed: ['maxQueue', 'kvType'], revision: revision + 1 });
    expect(changed.body['position']).toMatch(/^\d+$/);
    const stale = { 'if-match': `"${revision}"` };
    const conflict = await send('PATCH', '/admin/settings/fleet', { values: { maxQueue: 7 } }, stale);
    expect(conflict).toMatchObject({ status: 409, body: { code: 'conflict', revision: revision + 1 } });
    const pair = `${stand.agent.id}~${MODEL}`;
    await send('PATCH', `/admin/settings/${pair}`, { values: { kvType: 'f16' } });
    const { body } = await send('GET', `/admin/settings/${encodeURIComponent(pair)}`);
    expect(body).toMatchObject({
      level: 'pair',
      own: { kvType: { value: 'f16', by: 'local' } },
      inherited: { kvType: { value: 'q8_0', from: 'fleet', scope: 'fleet' } },
      effective: { kvType: { value: 'f16', from: 'pair', scope: pair } },
    });
    const back = await send('PATCH', '/admin/settings', { values: { maxQueue: null, kvType: null } });
    expect(back.body['changed']).toEqual(['maxQueue', 'kvType']);
    expect((await send('PATCH', '/admin/settings', { values: { maxQueue: null } })).body['changed']).toEqual(
      [],
    );
  });

  it.each([
    ['/admin/settings', { maxQueue: 0 }, 400, 'maxQueue'],
    ['/admin/settings', { nonsense: 1 }, 400, 'nonsense'],
    ['/admin/settings', { gpuLayers: 1 }, 400, 'gpuLayers'],
    ['/admin/settings', { trustedNetworks: ['everybody'] }, 400, 'trustedNetworks'],
    ['/admin/settings/nowhere', { maxQueue: 5 }, 404, 'scope'],
  ])('%s does not take %j', async (path, values, status, param) => {
    expect(await send('PATCH', path, { values })).toMatchObject({ status, body: { param } });
  });

  it('pages of the origins in the settings read every answer, errors too, and others read none', async () => {
    const preflight = (path: string) =>
      send('OPTIONS', path, undefined, {
        origin: PAGE,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      });
    expect((await preflight('/v1/chat/completions')).headers.get('access-control-allow-origin')).toBeNull();
    await send('PATCH', '/admin/settings', { values: { corsOrigins: [PAGE] } });
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/models', '/api/chat', '/health']) {
      const { status, headers } = await preflight(path);
      expect([path, status, headers.get('access-control-allow-origin')]).toEqual([path, 204, PAGE]);
      expect(headers.get('access-control-allow-headers')).toBe('authorization,content-type');
    }
    const page = { origin: PAGE };
    const answers = [
      await call(page),
      await call(page, { stream: 'odd' }),
      await call({ ...page, ...OUTSIDE }),
      await send('POST', '/v1/messages', { model: 'none' }, page),
      await send('GET', '/v1/nowhere', undefined, page),
      await send('GET', '/api/tags', undefined, page),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 401, expect.any(Number), 404, 200]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe(PAGE);
      const exposed = headers.get('access-control-expose-headers')?.split(', ');
      expect(exposed).toEqual(expect.arrayContaining(['x-berth-call', 'x-request-id', 'retry-after']));
    }
    const foreign = await call({ origin: 'https://other.example' });
    expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([401, null]);
    await send('PATCH', '/admin/settings', { values: { corsOrigins: null } });
    expect((await call(page)).headers.get('access-control-allow-origin')).toBeNull();
  });

  it('no key is in a log line, in an event, or in a file below the home', async () => {
    await call(bearer(`${shown[0] ?? ''}x`));
    await send('GET', '/admin/queue', undefined, bearer(shown[0]?.replace(/.$/, '!') ?? ''));
    const secrets = shown.map((key) => key.split('_').slice(2).join('_').slice(0, -1));
    expect(secrets.length).toBeGreaterThan(3);
    expect(lines.length).toBeGreaterThan(10);
    const events: string[] = [];
    for (const key of shown) {
      for await (const { event } of stand.log.readForwards(streams.key(key.split('_')[1] ?? '')))
        events.push(JSON.stringify(event));
    }
    for (const model of [MODEL, 'chat-b']) events.push(JSON.stringify(await stand.callEvents(model)));
    const files = readdirSync(stand.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    const kept = [...lines, ...events, ...files].join('\n');
    expect(kept).toContain(shown[0]?.split('_')[1]);
    for (const secret of secrets) expect(kept.includes(secret)).toBe(false);
  });
});
