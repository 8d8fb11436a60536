import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { newId } from '#runtime/ids.js';
import { isDataPlane, routeOf } from './endpoints.js';
import type { Gateway } from './gateway.js';
import { refuseUnreadable } from './unreadable.js';

/** How long a caller may take to ask; what it is answered has no limit of time, since a cold load has none. */
export interface FrontLimits {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly lookEveryMs: number;
}

/** Above what load balancers and clients keep idle connections for. */
const KEEP_ALIVE_MS = 75_000;
const HEADERS_MS = 60_000;
/** Head and body; what makes no progress in between is ended sooner (see `receiveBody`). A cold load does not count. */
const REQUEST_MS = 900_000;
/** How often both are looked at. */
const LOOK_EVERY_MS = 5000;

const LIMITS: FrontLimits = { headersMs: HEADERS_MS, requestMs: REQUEST_MS, lookEveryMs: LOOK_EVERY_MS };

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** One port: the data plane takes its requests before the framework does; everything else goes on to it. */
export function createFront(
  gateway: Pick<Gateway, 'handle'>,
  framework: Handler,
  limits: FrontLimits = LIMITS,
): Server {
  const options = { connectionsCheckingInterval: limits.lookEveryMs };
  const server = createServer(options, (req, res) => {
    const path = routeOf(req.url ?? '/');
    if (isDataPlane(path)) gateway.handle(req, res, path);
    else {
      res.setHeader('x-request-id', newId());
      framework(req, res);
    }
  });
  server.on('clientError', refuseUnreadable);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = limits.headersMs;
  server.requestTimeout = limits.requestMs;
  return server;
}
