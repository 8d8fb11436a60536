import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { fillContext } from './fill-context.js';

const CONTEXT_TOKENS = 512;
const KEY = 'of-this-engine';

describe('filling the context of an engine', () => {
  const servers: ReturnType<typeof createServer>[] = [];
  const serve = async (listener: RequestListener): Promise<number> => {
    const server = createServer(listener);
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });
  const fill = (port: number, goesOn = () => true) =>
    fillContext({ port, key: KEY, contextTokens: CONTEXT_TOKENS, goesOn });

  it.each([1, 3])('comes close to its end with %d tokens a word, by what the engine counts', async (each) => {
    const asked: number[] = [];
    const port = await serve((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const { prompt } = JSON.parse(Buffer.concat(parts).toString()) as { prompt: string };
        const tokens = (prompt.length / 2) * each + 5;
        asked.push(tokens);
        const fits = request.headers.authorization === `Bearer ${KEY}` && tokens < CONTEXT_TOKENS;
        response.writeHead(fits ? 200 : 400);
        response.end(
          JSON.stringify(
            fits ? { usage: { prompt_tokens: tokens } } : { error: { n_prompt_tokens: tokens } },
          ),
        );
      });
    });
    const filled = await fill(port);
    expect(filled).toBeGreaterThanOrEqual(CONTEXT_TOKENS - 16);
    expect(filled).toBeLessThan(CONTEXT_TOKENS);
    expect(asked.at(-1)).toBe(filled);
  });

  it('leaves an engine that is wanted for something else, which notices', async () => {
    let isWanted = false;
    let left: Promise<unknown> | undefined;
    const port = await serve((_request, response) => {
      left = once(response, 'close');
      isWanted = true;
    });
    expect(await fill(port, () => !isWanted)).toBeUndefined();
    await left;
  });

  it('knows nothing of an engine that refuses, or says no JSON', async () => {
    const refuses = await serve((_request, response) => response.writeHead(401).end('{}'));
    const mumbles = await serve((_request, response) => response.end('who knows'));
    expect([await fill(refuses), await fill(mumbles)]).toEqual([undefined, undefined]);
  });
});
