import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createEngineServer } from './server.js';

it('answers 503 on /health while the model loads, and 200 once it serves; a caller that waits is told then', async () => {
  let served = (): void => undefined;
  let isReady = false;
  const ready = new Promise<void>((resolve) => (served = resolve));
  const server = createEngineServer({
    key: 'k',
    ready,
    isReady: () => isReady,
    stopping: new AbortController().signal,
    get: () => undefined,
    post: () => undefined,
    shutdown: () => undefined,
    track: () => undefined,
  }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const loading = await fetch(`${url}/health`);
    expect(loading.status).toBe(503);
    expect(await loading.json()).toMatchObject({ error: { message: 'Loading model' } });
    // Nothing is generated meanwhile either, key or not.
    const headers = { authorization: 'Bearer k' };
    expect((await fetch(`${url}/v1/completions`, { method: 'POST', headers, body: '{}' })).status).toBe(503);
    let told: number | undefined;
    const waiting = fetch(`${url}/health?wait`).then(({ status }) => (told = status));
    expect((await fetch(`${url}/health`)).status).toBe(503);
    expect(told).toBeUndefined();
    isReady = true;
    served();
    expect(await waiting).toBe(200);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
