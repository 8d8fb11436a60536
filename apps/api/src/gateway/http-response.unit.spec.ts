import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseParser } from './http-response.js';

interface Heard {
  statuses: number[];
  headers: Record<string, unknown>;
  body: string;
  pieces: number;
  ends: number;
  keepAlive: boolean;
  complete: boolean;
}

/** What comes out when these reads come in; the buffer of each is overwritten after it, as a socket's is. */
function hear(reads: readonly Buffer[], closes = false): Heard {
  const heard = { statuses: [] as number[], headers: {}, body: '', pieces: 0, ends: 0 };
  const parser = new ResponseParser({
    head: (status, headers) => {
      heard.statuses.push(status);
      heard.headers = headers;
    },
    data: (chunk) => {
      heard.body += chunk.toString('latin1');
      heard.pieces += 1;
    },
    end: () => (heard.ends += 1),
  });
  for (const read of reads) {
    const shared = Buffer.from(read);
    parser.push(shared);
    shared.fill(0x2a);
  }
  const complete = closes ? parser.close() : heard.ends > 0;
  return { ...heard, keepAlive: parser.keepAlive, complete };
}

const chunked = (pieces: readonly string[], trailer = ''): string =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\n\r\n` +
  pieces.map((piece) => `${piece.length.toString(16)};ext=1\r\n${piece}\r\n`).join('') +
  `0\r\n${trailer}\r\n`;

const cut = (text: string, places: readonly number[]): Buffer[] => {
  const at = [...new Set(places.map((place) => place % text.length))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => Buffer.from(text.slice(from, at[i] ?? text.length), 'latin1'));
};
const PLACES = fc.array(fc.nat(10_000), { maxLength: 12 });
const PIECES = fc.array(fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }), { maxLength: 8 });

describe('the parser of an engine’s answers', () => {
  it('reads a chunked answer, however it was cut on its way', () => {
    const property = fc.property(PIECES, PLACES, fc.boolean(), (pieces, places, trailer) => {
      const heard = hear(cut(chunked(pieces, trailer ? 'x-trailer: 1\r\n' : ''), places));
      expect(heard).toMatchObject({ statuses: [200], body: pieces.join(''), ends: 1, keepAlive: true });
      expect(heard.headers).toMatchObject({ 'x-a': '1, 2' });
    });
    fc.assert(property);
  });

  it('reads an answer with a length, however it was cut on its way', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), PLACES, (body, places) => {
        const text = `HTTP/1.1 404 Not Found\r\ncontent-length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
        expect(hear(cut(text, places))).toMatchObject({ statuses: [404], body, ends: 1, keepAlive: false });
      }),
    );
  });

  it('takes what one read brought as one piece', () => {
    const text = chunked(['a', 'bc', 'def']);
    expect(hear([Buffer.from(text)])).toMatchObject({ body: 'abcdef', pieces: 1, ends: 1 });
  });

  it('passes interim heads on, and reads the answer after them', () => {
    const text = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi';
    expect(hear([Buffer.from(text)])).toMatchObject({ statuses: [102, 200], body: 'hi', ends: 1 });
  });

  it('ends an answer without a length with its connection, and only that', () => {
    const open = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: x\n\n';
    expect(hear([Buffer.from(open)], true)).toMatchObject({ body: 'data: x\n\n', ends: 1, complete: true });
    expect(hear([Buffer.from(chunked(['abc']).slice(0, -2))], true)).toMatchObject({
      ends: 0,
      complete: false,
    });
    const short = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc';
    expect(hear([Buffer.from(short)], true)).toMatchObject({ body: 'abc', ends: 0, complete: false });
  });

  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9\r\n\r\n', 'HTTP/1.1'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 'two lengths'],
    ['a length in words', 'HTTP/1.1 200 OK\r\ncontent-length: one\r\n\r\n', 'no number'],
    ['a chunk without a size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n', 'no size'],
    ['a chunk that is too long', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc', 'longer'],
    ['a coding that is not read', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n', 'coding'],
    ['a second answer', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab', 'more than its answer'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`, 'too long'],
  ])('refuses %s', (_what, text, words) => {
    expect(() => hear([Buffer.from(text)])).toThrow(words);
  });
});
