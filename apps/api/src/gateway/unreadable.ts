import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { berthError, type ErrorCode } from '#domain/errors.js';
import { envelope } from './answers.js';

type Refusal = readonly [status: string, code: ErrorCode, message: string];

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'invalid_request',
    'The headers of the request are longer than is taken. Send fewer or shorter ones.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    '408 Request Timeout',
    'request_timeout',
    'The request did not come to its end in time. Send it whole.',
  ],
};
const NO_HTTP: Refusal = [
  '400 Bad Request',
  'invalid_request',
  'What was sent cannot be read as an HTTP/1.1 request.',
];

/**
 * Answers bytes that make no request: nobody else hears of them. Into an answer that has begun nothing is written: its
 * caller would take it for a part of it.
 */
export function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  // As node's own answer to them finds out what is under way on a connection.
  const { _httpMessage: underWay } = socket as Duplex & { _httpMessage?: ServerResponse | null };
  if (socket.writable && underWay?.headersSent !== true) {
    const [status, code, message] = REFUSALS[error.code ?? ''] ?? NO_HTTP;
    const body = JSON.stringify(envelope(berthError(code, message)));
    const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n`;
    socket.write(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }
  socket.destroy(error);
}
