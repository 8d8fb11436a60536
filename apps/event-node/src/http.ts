import type { RequestListener, ServerResponse } from 'node:http';
import { COMPATIBLE_VERSION } from './services/server-features.js';
import type { NodeContext } from './services/context.js';

/** The few plain requests that production's tools and load balancers ask. */
export function httpHandler(context: NodeContext, secure: boolean): RequestListener {
  return (request, response) => {
    const path = (request.url ?? '/').replace(/\?.*$/s, '');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      answer(response, 404, { error: 'not-found' });
      return;
    }
    switch (path) {
      case '/ping':
        answer(response, 200, { msgTypeId: 2, text: 'Ping request successfully handled' });
        return;
      case '/health/live':
        response.writeHead(context.calls.stopping ? 503 : 204).end();
        return;
      case '/info':
        answer(response, 200, {
          dbVersion: COMPATIBLE_VERSION,
          esVersion: COMPATIBLE_VERSION,
          state: 'leader',
          features: { projections: false, userManagement: false, persistentSubscriptions: false },
          authentication: { type: secure ? 'Internal' : 'insecure', properties: {} },
          embedded: true,
        });
        return;
      default:
        answer(response, 404, { error: 'not-found' });
    }
  };
}

export function answer(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}
