import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isDataPlane, pathOf } from './endpoints.js';
import type { Gateway } from './gateway.js';

/** Above what load balancers and clients keep idle connections for. */
const KEEP_ALIVE_MS = 75_000;
const HEADERS_MS = 80_000;

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** One port: the data plane takes its requests before the framework does; everything else goes on to it. */
export function createFront(gateway: Gateway, framework: Handler): Server {
  const server = createServer((req, res) => {
    if (isDataPlane(pathOf(req.url ?? '/'))) gateway.handle(req, res);
    else framework(req, res);
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = HEADERS_MS;
  // A slow upload and a cold load are no faults: deadlines are the queue's.
  server.requestTimeout = 0;
  return server;
}
