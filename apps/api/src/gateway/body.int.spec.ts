import { randomBytes } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually, RawSocket } from '../testing/stand.js';
import { Alarms } from './alarms.js';
import { receiveBody } from './body.js';
import { createFront } from './front.js';

/** Bodies of every way of coming, one after another over buffers that are used again. */
it('is the bytes that came, however long and however told, though its buffer held another before', async () => {
  const read: Buffer[] = [];
  const server = createServer((req, res) => {
    const body = receiveBody(req, (received) => {
      if (received?.ok) read.push(Buffer.from(received.value));
      body?.release();
      res.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const sizes = [0, 1, 65_535, 65_536, 65_537, 200_000, 2_000_000, 9_000_000, 150_000];
  const sent = sizes.flatMap((size) =>
    [false, true].map((chunked) => ({ bytes: randomBytes(size), chunked })),
  );
  for (const { bytes, chunked } of sent) {
    const body = chunked ? piecesOf(bytes) : bytes;
    await fetch(url, { method: 'POST', body, duplex: 'half' });
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(read.length).toBe(sent.length);
  for (const [n, { bytes }] of sent.entries()) expect(read[n]?.equals(bytes)).toBe(true);
});

function piecesOf(bytes: Buffer): ReadableStream {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 70_000) pieces.push(bytes.subarray(at, at + 70_000));
  return ReadableStream.from(pieces);
}

describe('a body that comes slowly', () => {
  let server: Server;
  let socket: RawSocket;
  const read: string[] = [];
  let begun = 0;

  beforeEach(async () => {
    read.length = 0;
    begun = 0;
    const stalls = { alarms: new Alarms(20), afterMs: 300 };
    server = createServer((req, res) => {
      begun += 1;
      receiveBody(
        req,
        (body) => {
          read.push(body === undefined ? 'left' : body.ok ? body.value.toString() : body.error.code);
          res.end();
        },
        stalls,
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    socket = new RawSocket((server.address() as AddressInfo).port);
    socket.send('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20\r\n\r\n');
  });
  afterEach(async () => {
    socket.socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('is read as long as something of it comes', async () => {
    // Longer than it may be silent, all together.
    for (let n = 0; n < 20; n += 1) {
      socket.send('x');
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    expect(await eventually('the body', () => read[0])).toBe('x'.repeat(20));
  });

  it('is given up when nothing of it comes any more', async () => {
    socket.send('half');
    expect(await eventually('the end of the wait', () => read[0])).toBe('request_timeout');
  });

  it('is forgotten when its sender leaves', async () => {
    socket.send('half');
    await eventually('the request', () => (begun === 1 ? true : undefined));
    socket.socket.destroy();
    expect(await eventually('the end of the wait', () => read[0])).toBe('left');
  });
});

describe('a caller that is slow to ask', () => {
  let server: Server;
  let socket: RawSocket;

  beforeEach(async () => {
    const gateway = {
      // Longer than everything that a caller is allowed for asking.
      handle: (_: unknown, res: ServerResponse, path: string): void => {
        if (path === '/v1/stream') res.write('begun');
        else setTimeout(() => res.end('at last'), 700);
      },
    };
    const limits = { headersMs: 150, requestMs: 300, lookEveryMs: 20 };
    server = createFront(gateway, (_, res) => res.end(), limits);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    socket = new RawSocket((server.address() as AddressInfo).port);
  });
  afterEach(async () => {
    socket.socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('has its connection closed when its head does not end', async () => {
    socket.send('POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n');
    expect(await socket.ends()).toMatch(/^HTTP\/1\.1 408/);
  });

  it.each([
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '400'],
    ['POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n', '400'],
    [`GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, '431'],
  ])('is told in the words of every error what cannot be read: %#', async (bytes, status) => {
    socket.send(bytes);
    const [head = '', body = ''] = (await socket.ends()).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'invalid_request' } });
  });

  it('finds nothing in an answer that has begun of what it sent beside it', async () => {
    socket.send('GET /v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await socket.hears('begun');
    socket.send('no request\r\n\r\n');
    const heard = await socket.ends();
    expect(heard.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(heard).not.toContain('error');
  });

  it('is answered however long the answer takes, once it has asked', async () => {
    socket.send('GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n');
    expect(await socket.hears('at last')).toMatch(/^HTTP\/1\.1 200/);
  });
});
