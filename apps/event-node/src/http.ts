import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { ADMINS } from './access/users.js';
import { messageOf, NodeError, type RefusalCode } from './errors.js';
import type { NodeContext } from './services/context.js';
import { COMPATIBLE_VERSION } from './services/server-features.js';

const LARGEST_BODY = 64 * 1024;

/** The few plain requests that production's tools and load balancers ask, and the node's own maintenance. */
export function httpHandler(context: NodeContext, secure: boolean): RequestListener {
  return (request, response) => {
    const path = (request.url ?? '/').replace(/\?.*$/s, '');
    if (request.method === 'POST') {
      maintain(context, path, request).then(
        (report) => (report === undefined ? notFound(response) : answer(response, 200, report)),
        (error: unknown) => answer(response, statusOf(error), { error: messageOf(error) }),
      );
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      notFound(response);
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
        notFound(response);
    }
  };
}

/** Undefined for a path that is none. */
async function maintain(
  { users, store }: NodeContext,
  path: string,
  request: IncomingMessage,
): Promise<object | undefined> {
  // On an insecure node a web page could post here; it cannot without an Origin and with this type of body.
  if (request.headers.origin !== undefined || request.headers['content-type'] !== 'application/json') {
    throw new NodeError(
      { code: 'access-denied' },
      'Maintenance is asked for with a body of application/json.',
    );
  }
  const principal = users.authenticate(request.headers.authorization);
  if (!principal.roles.has(ADMINS)) {
    throw new NodeError({ code: 'access-denied' }, `User '${principal.name}' may not maintain the log.`);
  }
  const body = await bodyOf(request);
  switch (path) {
    case '/admin/scavenge':
      return store.scavenge();
    case '/admin/verify':
      return store.verify();
    case '/admin/backup':
      return store.backup(folderIn(body));
    default:
      return undefined;
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request as AsyncIterable<Buffer>) {
    text += chunk.toString('utf8');
    if (text.length > LARGEST_BODY) throw badRequest('The body is too large.');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`The body is no JSON: ${messageOf(error)}.`);
  }
}

function folderIn(body: unknown): string {
  if (typeof body === 'object' && body !== null && 'folder' in body && typeof body.folder === 'string') {
    return body.folder;
  }
  throw badRequest('A backup needs {"folder": "…"}: where shall it go?');
}

const STATUSES: Partial<Record<RefusalCode, number>> = {
  unauthenticated: 401,
  'access-denied': 403,
  'bad-request': 400,
};

const statusOf = (error: unknown): number =>
  (error instanceof NodeError ? STATUSES[error.code] : undefined) ?? 500;

const badRequest = (message: string): NodeError => new NodeError({ code: 'bad-request' }, message);
const notFound = (response: ServerResponse): void => answer(response, 404, { error: 'not found' });

function answer(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}
