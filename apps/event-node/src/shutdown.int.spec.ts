import { afterEach, expect, test } from 'vitest';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { START } from '@eventstore/db-client';
import { startEventNode } from './node.js';
import { rawUnary } from './testing/raw-client.js';
import {
  connect,
  disposeWithin,
  event,
  eventually,
  startTestNode,
  temporaryFolder,
  type TestNode,
} from './testing/node-fixture.js';

let running: TestNode | undefined;
afterEach(async () => {
  await running?.stop();
  running = undefined;
});

const get = (port: number, path: string, ca?: string) =>
  new Promise<{ status: number; body: string }>((resolve, reject) => {
    const options = { port, path, host: '127.0.0.1', agent: false, ...(ca ? { ca } : {}) };
    const call = (ca ? secureRequest : request)(options, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += String(chunk)));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    call.on('error', reject);
    call.end();
  });

for (const insecure of [true, false]) {
  test(`plain HTTP is answered on the port of gRPC, ${insecure ? 'plain' : 'over TLS'}`, async () => {
    running = await startTestNode({ insecure });
    const { node, dataDir } = running;
    const ca = insecure ? undefined : readFileSync(join(dataDir, 'tls', 'ca.pem'), 'utf8');
    expect(await get(node.port, '/ping', ca)).toMatchObject({ status: 200 });
    expect(await get(node.port, '/health/live', ca)).toEqual({ status: 204, body: '' });
    const info = await get(node.port, '/info', ca);
    expect(JSON.parse(info.body)).toMatchObject({ embedded: true, state: 'leader' });
    expect(await get(node.port, '/streams/x', ca)).toMatchObject({ status: 404 });
  });
}

test('what the node has not is UNIMPLEMENTED', async () => {
  running = await startTestNode();
  for (const method of [
    'persistent_subscriptions.PersistentSubscriptions/Create',
    'projections.Projections/Create',
    'users.Users/Create',
    'operations.Operations/StartScavenge',
  ]) {
    expect(await rawUnary(running.node.port, `/event_store.client.${method}`)).toMatchObject({ code: 12 });
  }
  await expect(running.client.listAllPersistentSubscriptions()).rejects.toMatchObject({
    message: expect.stringMatching(/support|404|not/i) as string,
  });
});

test('a client that asks the cluster who leads is led to this node', async () => {
  running = await startTestNode();
  const client = connect(`esdb+discover://127.0.0.1:${running.node.port}?tls=false`);
  expect((await client.appendToStream('found-1', event())).success).toBe(true);
  await disposeWithin(client);
});

test('a stop commits what was taken, ends open calls with CANCELLED and leaves nothing half', async () => {
  const folder = temporaryFolder();
  const start = () => startEventNode({ port: 0, host: '127.0.0.1', insecure: true, dataDir: folder.path });
  const node = await start();
  const client = connect(node.connectionString);
  const errors: string[] = [];
  const subscription = client.subscribeToAll({ fromPosition: START });
  const live = new Promise<void>((resolve) => subscription.on('caughtUp', resolve));
  subscription.on('error', (error) => errors.push((error as { type?: string }).type ?? String(error)));
  subscription.on('data', () => undefined);
  await live;
  const appends = Array.from({ length: 50 }, (_, i) => client.appendToStream('stop-1', event('T', { i })));
  await appends[0];
  await node.stop();
  const results = await Promise.allSettled(appends);
  await eventually(() => errors.length > 0, 'the subscription ended');
  expect(errors).toEqual(['cancelled']);
  await expect(client.appendToStream('stop-1', event())).rejects.toMatchObject({ code: 14 });
  await disposeWithin(client);

  const again = await start();
  const reader = connect(again.connectionString);
  let kept = 0;
  for await (const { event: e } of reader.readStream('stop-1')) if (e) kept++;
  expect(kept).toBeGreaterThanOrEqual(results.filter((r) => r.status === 'fulfilled').length);
  await disposeWithin(reader);
  await again.stop();
  folder.remove();
});

test('ids are known again after a restart, so that a repeated append of any is not written twice', async () => {
  const folder = temporaryFolder();
  const start = () => startEventNode({ port: 0, host: '127.0.0.1', insecure: true, dataDir: folder.path });
  const batch = Array.from({ length: 300 }, () => event());
  const first = await start();
  const writer = connect(first.connectionString);
  const before = await writer.appendToStream('again-1', batch);
  await disposeWithin(writer);
  await first.stop();
  const second = await start();
  const repeater = connect(second.connectionString);
  expect(await repeater.appendToStream('again-1', batch)).toEqual(before);
  await disposeWithin(repeater);
  await second.stop();
  folder.remove();
});

test('the 101st open call of a connection waits, as in production', async () => {
  running = await startTestNode();
  const { client } = running;
  await client.appendToStream('wall-1', event());
  const subscriptions = Array.from({ length: 99 }, () => client.subscribeToStream('wall-1'));
  let confirmed = 0;
  for (const s of subscriptions) {
    s.on('confirmation', () => confirmed++);
    s.on('error', () => undefined);
  }
  await eventually(() => confirmed === 99, 'ninety-nine subscriptions are open');
  let answered = false;
  const late = client.subscribeToStream('wall-1');
  late.on('confirmation', () => (answered = true));
  late.on('error', () => undefined);
  await client.appendToStream('wall-1', event());
  expect(answered).toBe(false);
  await subscriptions[0]?.unsubscribe();
  await eventually(() => answered, 'the waiting call got its turn');
  await Promise.all([...subscriptions.slice(1), late].map((s) => s.unsubscribe()));
});
