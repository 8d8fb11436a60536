import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface EngineRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Settles when the connection of the request is gone. */
  readonly closed: Promise<void>;
}

export type Script = (request: EngineRequest) => void | Promise<void>;

/** An HTTP server that answers as a test says: for what real engines cannot be made to do on purpose. */
export class ScriptedEngine {
  readonly requests: EngineRequest[] = [];
  script: Script;
  readonly #server = createServer((req, res) => void this.#take(req, res));
  readonly #sockets = new Set<Socket>();

  constructor(script: Script = sayHello) {
    this.script = script;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** As SIGKILL does it: every connection breaks and none is taken any more. */
  die(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async #take(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const closed = new Promise<void>((resolve) => res.on('close', () => resolve()));
    const request = {
      method: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers,
      body: Buffer.concat(chunks),
      req,
      res,
      closed,
    };
    this.requests.push(request);
    await this.script(request);
  }
}

export const chunkOf = (content: string): string =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;

export const USAGE_CHUNK = `data: ${JSON.stringify({
  object: 'chat.completion.chunk',
  choices: [],
  usage: { prompt_tokens: 7, completion_tokens: 2 },
  timings: { cache_n: 3, prompt_n: 4, prompt_ms: 8, predicted_n: 2, predicted_ms: 20 },
})}\n\n`;

export const DONE = 'data: [DONE]\n\n';

export const startStream = (res: ServerResponse): void =>
  void res.writeHead(200, { 'content-type': 'text/event-stream' });

/** Streams or answers "hello", as the body asks. */
export const sayHello = ({ body, res }: Pick<EngineRequest, 'body' | 'res'>): ReturnType<Script> => {
  const { stream } = JSON.parse(body.toString()) as { stream?: boolean };
  if (stream === true) {
    startStream(res);
    res.end(chunkOf('hel') + chunkOf('lo') + USAGE_CHUNK + DONE);
    return;
  }
  const answer = JSON.stringify({
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 2 },
  });
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
  res.end(answer);
};
