import { Agent, createServer as createHttpServer, request as httpRequest } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { FRAMES, PACED_EVERY_MS } from './verdict.js';
import { HttpCutter } from './http-cutter.js';

/**
 * The other two ends of the bench, each in a process of its own. The engine reads and writes sockets directly, so that
 * the processor is left to what is measured.
 */
const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'y'.repeat(200) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200, completion_tokens: 16, total_tokens: 216 },
});
const JSON_ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`,
);
const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const chunked = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const frameOf = (content: string): string =>
  chunked(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
const FRAME = frameOf('token');
const END = `${chunked('data: [DONE]\n\n')}0\r\n\r\n`;

/** Answers as the body asks: `"kind":"burst"`, `"paced"` or `"idle"`; JSON when it says nothing. */
export function runEngine(): void {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    const cutter = new HttpCutter();
    socket.on('data', (chunk: Buffer) => {
      for (const message of cutter.push(chunk)) answer(socket, message);
    });
    // A caller that hangs up is part of the load.
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

function answer(socket: Socket, message: Buffer): void {
  const kind = /"kind":"(\w+)"/.exec(message.toString('latin1', Math.max(0, message.length - 200)))?.[1];
  if (kind === undefined) socket.write(JSON_ANSWER);
  else if (kind === 'paced') pace(socket);
  else if (kind === 'idle') socket.write(STREAM_HEAD + FRAME);
  else {
    // As engines do it: a write for every token.
    socket.write(STREAM_HEAD);
    for (let i = 0; i < FRAMES; i += 1) socket.write(FRAME);
    socket.write(END);
  }
}

/** A token each 10 ms, with the instant at which it was due, so that its delay can be told. */
function pace(socket: Socket): void {
  socket.write(STREAM_HEAD);
  let sent = 0;
  const timer = setInterval(() => {
    if (socket.destroyed) {
      clearInterval(timer);
      return;
    }
    sent += 1;
    socket.write(frameOf(`at=${Date.now()}.`));
    if (sent < FRAMES) return;
    clearInterval(timer);
    socket.write(END);
  }, PACED_EVERY_MS);
}

/** The least that a proxy in Node can do: pipes in both directions. */
export function runFloor(enginePort: number): void {
  const agent = new Agent({ keepAlive: true });
  const server = createHttpServer((req, res) => {
    const { url: path, method, headers } = req;
    const options = { port: enginePort, host: '127.0.0.1', path, method, headers, agent };
    const upstream = httpRequest(options, (engine) => {
      res.writeHead(engine.statusCode ?? 502, engine.headers);
      engine.pipe(res);
    });
    upstream.on('error', () => res.destroy());
    res.on('close', () => upstream.destroy());
    req.pipe(upstream);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}
