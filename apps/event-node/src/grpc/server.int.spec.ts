import { afterEach, expect, test } from 'vitest';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { GrpcServer, type Handler } from './server.js';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve(
  methods: Readonly<Record<string, Handler>>,
  pings?: { everyMs: number; withinMs: number },
): Promise<{ port: number; grpc: GrpcServer; sockets: Socket[] }> {
  const grpc = new GrpcServer(new Map(Object.entries(methods)), pings);
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    grpc.accept(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    grpc.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, grpc, sockets };
}

function session(port: number): ClientHttp2Session {
  const client = connectHttp2(`http://127.0.0.1:${port}`);
  client.on('error', () => undefined);
  closing.push(() => client.destroy());
  return client;
}

interface Answer {
  readonly status: string | undefined;
  readonly message: string | undefined;
  readonly body: Buffer;
}

function call(client: ClientHttp2Session, path: string, body: Buffer, headers = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = client.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    const chunks: Buffer[] = [];
    let ending: Record<string, unknown> = {};
    stream.on('response', (head) => {
      ending = { ...head };
    });
    stream.on('trailers', (trailers: Record<string, unknown>) => {
      ending = { ...ending, ...trailers };
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('end', () =>
      resolve({
        status: ending['grpc-status'] as string | undefined,
        message: ending['grpc-message'] as string | undefined,
        body: Buffer.concat(chunks),
      }),
    );
    stream.end(body);
  });
}

const framed = (text: string): Buffer => {
  const message = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

/** Answers each message with itself. */
const echo: Handler = (c) =>
  c.listen({ onMessage: (message) => c.write(Buffer.from(message)), onHalfClose: () => c.end() });

test('messages of one turn leave in one piece, in order, and the status follows them', async () => {
  const { port } = await serve({ '/echo': echo });
  const answer = await call(session(port), '/echo', Buffer.concat([framed('a'), framed(''), framed('bc')]));
  expect(answer).toEqual({
    status: '0',
    message: '',
    body: Buffer.concat([framed('a'), framed(''), framed('bc')]),
  });
});

test('a method that the node has not is UNIMPLEMENTED, a compressed message too, a large one RESOURCE_EXHAUSTED', async () => {
  const { port } = await serve({ '/echo': echo });
  const client = session(port);
  expect(await call(client, '/other', framed('a'))).toMatchObject({ status: '12' });
  expect(await call(client, '/echo', Buffer.from([1, 0, 0, 0, 0]))).toMatchObject({ status: '12' });
  const large = await call(client, '/echo', Buffer.from([0, 0x7f, 0, 0, 0]));
  expect(large.status).toBe('8');
  expect(decodeURI(large.message ?? '')).toMatch(/at most 17825792/);
});

test('a call whose deadline passes ends with DEADLINE_EXCEEDED, and its handler hears of it', async () => {
  let gone = false;
  const { port } = await serve({
    '/silent': (c) => c.listen({ onMessage: () => undefined, onGone: () => (gone = true) }),
  });
  expect(await call(session(port), '/silent', framed('a'), { 'grpc-timeout': '20m' })).toMatchObject({
    status: '4',
  });
  expect(gone).toBe(true);
});

test('a call that its client leaves is told to its handler once', async () => {
  let heard = 0;
  const left = new Promise<void>((resolve) => {
    void serve({
      '/silent': (c) =>
        c.listen({
          onMessage: () => undefined,
          onGone: () => {
            heard++;
            resolve();
          },
        }),
    }).then(({ port }) => {
      const stream = session(port).request({
        ':method': 'POST',
        ':path': '/silent',
        'content-type': 'application/grpc',
      });
      stream.on('error', () => undefined);
      stream.write(framed('a'), () => stream.close(8));
    });
  });
  await left;
  expect(heard).toBe(1);
});

test('a peer that answers no ping is dropped, and one that answers stays', async () => {
  const { port, sockets } = await serve({ '/echo': echo }, { everyMs: 20, withinMs: 400 });
  const answering = session(port);
  await once(answering, 'connect');
  expect(await call(answering, '/echo', framed('a'))).toMatchObject({ status: '0' });
  // The beginning of HTTP/2 and no word more: its pings stay unanswered.
  const silent = connect(port, '127.0.0.1');
  silent.on('error', () => undefined);
  silent.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  silent.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
  silent.resume();
  await once(silent, 'close');
  expect(sockets.map((socket) => socket.destroyed)).toEqual([false, true]);
  expect(await call(answering, '/echo', framed('b'))).toMatchObject({ status: '0' });
});

test('nobody is dropped because the node itself stood still for longer than that', async () => {
  const { port } = await serve({ '/echo': echo }, { everyMs: 20, withinMs: 60 });
  const answering = session(port);
  await once(answering, 'connect');
  for (let n = 0; n < 5; n += 1) {
    expect(await call(answering, '/echo', framed('a'))).toMatchObject({ status: '0' });
    const until = performance.now() + 150;
    while (performance.now() < until);
  }
  expect(await call(answering, '/echo', framed('b'))).toMatchObject({ status: '0' });
});
