import type { IncomingHttpHeaders } from 'node:http';

/** Hop-by-hop headers end at each connection; the rest of the list is ours to set, or must not reach the other side. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Never sent to an engine: the caller's credentials and cookies, compression (the stream is read on its way), what node
 * has already answered (`expect`), and lengths and hosts that are set anew.
 */
const NOT_UPSTREAM = new Set([
  ...HOP_BY_HOP,
  'host',
  'content-length',
  'accept-encoding',
  'authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'expect',
  'origin',
  'referer',
]);

/** Never taken from an engine: framing, compression that was not asked for, CORS (ours alone), its own identity. */
const NOT_DOWNSTREAM = new Set([
  ...HOP_BY_HOP,
  'content-length',
  'content-encoding',
  'x-request-id',
  'date',
  'server',
  'vary',
]);

/** Names listed in `Connection` are hop-by-hop too. */
function named(connection: string | string[] | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined) return undefined;
  const text = Array.isArray(connection) ? connection.join(',') : connection;
  if (text === 'keep-alive' || text === 'close') return undefined;
  return new Set(text.split(',').map((name) => name.trim().toLowerCase()));
}

/** The caller's headers as an engine gets them, as a flat list of names and values. */
export function upstreamHeaders(headers: IncomingHttpHeaders, key: string, bodyBytes: number): string[] {
  const out: string[] = [
    'authorization',
    `Bearer ${key}`,
    'accept-encoding',
    'identity',
    'content-length',
    String(bodyBytes),
  ];
  const extra = named(headers.connection);
  for (const name in headers) {
    if (NOT_UPSTREAM.has(name) || extra?.has(name)) continue;
    const value = headers[name];
    if (value === undefined) continue;
    out.push(name, typeof value === 'string' ? value : value.join(', '));
  }
  return out;
}

/** An engine's headers as the caller gets them. */
export function downstreamHeaders(headers: IncomingHttpHeaders): [string, string | string[]][] {
  const extra = named(headers.connection);
  const out: [string, string | string[]][] = [];
  for (const name in headers) {
    if (NOT_DOWNSTREAM.has(name) || name.startsWith('access-control-') || extra?.has(name)) continue;
    const value = headers[name];
    if (value !== undefined) out.push([name, value]);
  }
  return out;
}

/** What every event stream of ours says; no length, no compression, and no proxy may hold it back. */
export const STREAM_HEADERS: readonly (readonly [string, string])[] = [
  ['content-type', 'text/event-stream; charset=utf-8'],
  ['cache-control', 'no-cache, no-transform'],
  ['x-accel-buffering', 'no'],
];
