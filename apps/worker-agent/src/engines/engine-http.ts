import { request } from 'node:http';

export interface EngineReply {
  readonly status: number;
  readonly body: string;
}

/**
 * One question to an engine on loopback, on a connection of its own: engines close pooled ones when they like.
 * @returns undefined when nothing answers within the time.
 */
export function askEngine(
  port: number,
  path: string,
  options: { readonly key?: string; readonly method?: 'GET' | 'POST'; readonly timeoutMs: number },
): Promise<EngineReply | undefined> {
  return new Promise((resolve) => {
    const req = request({
      host: '127.0.0.1',
      port,
      path,
      method: options.method ?? 'GET',
      agent: false,
      headers: options.key === undefined ? {} : { authorization: `Bearer ${options.key}` },
    });
    const timer = setTimeout(() => req.destroy(new Error('timed out')), options.timeoutMs);
    const end = (reply: EngineReply | undefined) => {
      clearTimeout(timer);
      resolve(reply);
    };
    // Refused, reset or timed out: an engine that is starting, stopping or hanging; the caller looks at the process.
    req.on('error', () => end(undefined));
    req.on('response', (res) => {
      const parts: Buffer[] = [];
      res.on('data', (part: Buffer) => parts.push(part));
      res.on('error', () => end(undefined));
      res.on('end', () => end({ status: res.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }));
    });
    req.end();
  });
}

/** The body as an object; undefined when it is none. */
export function objectOf(reply: EngineReply | undefined): Record<string, unknown> | undefined {
  if (reply?.status !== 200) return undefined;
  try {
    const body: unknown = JSON.parse(reply.body);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
