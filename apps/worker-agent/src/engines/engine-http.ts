import { request } from 'node:http';

export interface EngineReply {
  readonly status: number;
  readonly body: string;
}

export interface EngineQuestion {
  readonly key?: string;
  readonly method?: 'GET' | 'POST';
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly timeoutMs: number;
  /** Ends it at once, and with it what the engine does for it. */
  readonly signal?: AbortSignal;
}

/**
 * One question to an engine on loopback, on a connection of its own: engines close pooled ones when they like.
 * @returns undefined when nothing answers within the time, or it was ended.
 */
export function askEngine(
  port: number,
  path: string,
  options: EngineQuestion,
): Promise<EngineReply | undefined> {
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  return new Promise((resolve) => {
    const req = request({
      host: '127.0.0.1',
      port,
      path,
      method: options.method ?? 'GET',
      agent: false,
      headers: {
        ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const timer = setTimeout(() => req.destroy(new Error('timed out')), options.timeoutMs);
    const end = (reply: EngineReply | undefined) => {
      clearTimeout(timer);
      resolve(reply);
    };
    // Refused, reset, timed out or ended: an engine that is starting, stopping or hanging; the caller looks at the process.
    req.on('error', () => end(undefined));
    req.on('response', (res) => {
      const parts: Buffer[] = [];
      res.on('data', (part: Buffer) => parts.push(part));
      res.on('error', () => end(undefined));
      res.on('end', () => end({ status: res.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }));
    });
    req.end(body);
  });
}

/** The body of a good answer as an object; undefined when it is none. */
export const objectOf = (reply: EngineReply | undefined): Record<string, unknown> | undefined =>
  reply?.status === 200 ? bodyOf(reply) : undefined;

/** The same of any answer. */
export function bodyOf(reply: EngineReply): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(reply.body);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
