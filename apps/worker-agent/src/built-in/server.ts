import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { badRequest, notFound, RequestError } from './failure.js';
import type { Answer, Exchange, FrameWriter } from './respond.js';

const BODY_LIMIT_BYTES = 100 * 1024 * 1024;

export interface Handlers {
  readonly key: string;
  /** Resolves when the model serves; for callers that ask `/health?wait`. */
  readonly ready: Promise<unknown>;
  readonly isReady: () => boolean;
  /** Aborted when the process stops: everything under way ends. */
  readonly stopping: AbortSignal;
  get(path: string): object | undefined;
  post(path: string): ((exchange: Exchange) => Promise<Answer>) | undefined;
  shutdown(): void;
  /** Counts a request from its arrival to its end. */
  track(change: 1 | -1): void;
}

const loading = () => new RequestError(503, 'unavailable_error', 'Loading model');

/** OpenAI's HTTP on loopback. Every route but `/health` needs the key, and the model. */
export function createEngineServer(handlers: Handlers): Server {
  const server = createServer((req, res) => {
    void answer(handlers, req, res);
  });
  // Connections are the gateway's and loopback: none is closed while an answer is thought about.
  server.requestTimeout = 0;
  server.headersTimeout = 60_000;
  server.keepAliveTimeout = 65_000;
  return server;
}

async function answer(handlers: Handlers, req: IncomingMessage, res: ServerResponse): Promise<void> {
  // `close` of the response, not of the request: that one comes as soon as the body has been read.
  const left = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) left.abort(new Error('The client left.'));
  });
  const signal = AbortSignal.any([left.signal, handlers.stopping]);
  const stream = { isOpen: false };
  try {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://engine');
    if (pathname === '/health') {
      if (!handlers.isReady() && searchParams.has('wait')) await settledOrAborted(handlers.ready, signal);
      if (!handlers.isReady()) throw loading();
      json(res, 200, { status: 'ok' });
      return;
    }
    authorise(handlers.key, req);
    if (req.method === 'POST' && pathname === '/shutdown') {
      json(res, 202, { status: 'stopping' });
      handlers.shutdown();
      return;
    }
    if (!handlers.isReady()) throw loading();
    if (req.method === 'GET') {
      const found = handlers.get(pathname);
      if (!found) throw notFound(`GET ${pathname}`);
      json(res, 200, found);
      return;
    }
    const route = req.method === 'POST' ? handlers.post(pathname) : undefined;
    if (!route) throw notFound(`${req.method ?? ''} ${pathname}`);
    handlers.track(1);
    try {
      const body = await readBody(req);
      const whole = await route({
        body,
        signal,
        stream: () => {
          stream.isOpen = true;
          return openStream(res, signal);
        },
      });
      if (whole) json(res, 200, whole);
    } finally {
      handlers.track(-1);
    }
  } catch (error) {
    if (left.signal.aborted) return;
    const failure = handlers.stopping.aborted
      ? new RequestError(503, 'unavailable_error', 'The engine is stopping.')
      : asRequestError(error);
    if (stream.isOpen) {
      res.end(`data: ${JSON.stringify(failure.body())}\n\n`);
    } else {
      json(res, failure.status, failure.body());
    }
  }
}

/** What is no refusal of ours is the engine's failure; its message has no words of the request. */
function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new RequestError(500, 'server_error', `The engine failed: ${why}`);
}

function authorise(key: string, req: IncomingMessage): void {
  const given = /^Bearer (.+)$/i.exec(req.headers.authorization ?? '')?.[1] ?? '';
  const digest = (text: string) => createHash('sha256').update(text).digest();
  if (!timingSafeEqual(digest(given), digest(key))) {
    throw new RequestError(401, 'authentication_error', 'Invalid API Key');
  }
}

async function settledOrAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  await Promise.race([
    promise.catch(() => undefined),
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    }),
  ]);
}

function json(res: ServerResponse, status: number, body: object): void {
  if (res.headersSent) return;
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  res.end(text);
}

async function readBody(req: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of req as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > BODY_LIMIT_BYTES) {
      throw new RequestError(413, 'invalid_request_error', `The body is over ${BODY_LIMIT_BYTES} bytes.`);
    }
    parts.push(part);
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))) as unknown;
  } catch {
    // The parser's own words quote the body, which must not be echoed into anyone's log.
    throw badRequest('The body is not valid JSON in UTF-8.');
  }
}

function openStream(res: ServerResponse, signal: AbortSignal): FrameWriter {
  res.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
  res.flushHeaders();
  res.socket?.setNoDelay(true);
  return {
    send: async (frame) => {
      signal.throwIfAborted();
      if (res.write(`data: ${JSON.stringify(frame)}\n\n`)) return;
      await new Promise<void>((resolve) => {
        const go = () => {
          res.off('drain', go);
          signal.removeEventListener('abort', go);
          resolve();
        };
        res.on('drain', go);
        signal.addEventListener('abort', go);
      });
    },
    done: () => res.end('data: [DONE]\n\n'),
  };
}
