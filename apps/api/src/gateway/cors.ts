import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Access } from '../access/access.js';

/** What clients read, and what says where an answer came from. */
const EXPOSED = [
  ...['x-berth-call', 'x-berth-model', 'x-berth-worker', 'x-berth-cold'],
  ...['x-request-id', 'request-id', 'x-should-retry', 'retry-after'],
].join(', ');
const METHODS = 'GET, HEAD, POST, OPTIONS';
/** How long a browser remembers a preflight: a setting that is taken back holds soon. */
const REMEMBERED_SECONDS = 600;

/**
 * Lets pages of the origins in the settings read the answers of the data plane, its errors too. Browsers send no key with
 * a preflight, so it is answered before anybody is asked for one.
 * @returns true when the request was a preflight and is answered.
 */
export function answerCors(
  access: Pick<Access, 'allowedOrigin'>,
  req: IncomingMessage,
  res: ServerResponse,
): boolean {
  if (req.headers.origin === undefined) return false;
  const allowed = access.allowedOrigin({ peer: req.socket.remoteAddress, headers: req.headers });
  if (allowed === undefined) return false;
  res.setHeader('access-control-allow-origin', allowed);
  res.setHeader('vary', 'Origin');
  const asked = req.headers['access-control-request-method'];
  if (req.method !== 'OPTIONS' || asked === undefined) {
    res.setHeader('access-control-expose-headers', EXPOSED);
    return false;
  }
  const wanted = req.headers['access-control-request-headers'];
  req.resume();
  res
    .writeHead(204, {
      'access-control-allow-methods': METHODS,
      // By name: `*` would leave out Authorization.
      ...(wanted === undefined ? {} : { 'access-control-allow-headers': wanted }),
      ...(req.headers['access-control-request-private-network'] === 'true'
        ? { 'access-control-allow-private-network': 'true' }
        : {}),
      'access-control-max-age': String(REMEMBERED_SECONDS),
    })
    .end();
  return true;
}
