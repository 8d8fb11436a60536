import { berthError, type BerthError } from '#domain/errors.js';

/** What the policy looks at; both node:http requests and Fastify's have it. */
export interface Visitor {
  /** Address of the immediate peer. */
  readonly peer: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

const LOCAL_NAMES = new Set(['localhost', '127.0.0.1', '[::1]']);

const isLoopback = (address: string): boolean =>
  address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');

/** `localhost:8080` → `localhost`; `[::1]:8080` → `[::1]`. */
const withoutPort = (host: string): string => host.replace(/:\d+$/, '').toLowerCase();

const one = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.[0];

/**
 * Who may call. Only local calls are accepted: from a loopback peer that names a local `Host`, with no `Origin` of
 * another place (no web page may drive a local server) and no forwarding header (what comes through a proxy is outside,
 * whatever it says).
 * @returns the refusal, or undefined when the visitor may come in.
 */
export function refuseVisitor(visitor: Visitor): BerthError | undefined {
  const { peer, headers } = visitor;
  if (peer === undefined || !isLoopback(peer)) {
    return refusal(`this call came from ${peer ?? 'an unknown address'}`);
  }
  const host = one(headers['host']);
  if (host === undefined || !LOCAL_NAMES.has(withoutPort(host))) {
    return refusal(`its Host is "${host ?? ''}", which is not localhost, 127.0.0.1 or [::1]`);
  }
  const origin = one(headers['origin']);
  if (origin !== undefined && !isLocalOrigin(origin)) {
    return refusal(`it was made by a page of ${origin}`);
  }
  for (const name in headers) {
    if (name === 'forwarded' || name.startsWith('x-forwarded-')) {
      return refusal(`its header ${name} says that it was forwarded from elsewhere`);
    }
  }
  return undefined;
}

function isLocalOrigin(origin: string): boolean {
  const match = /^https?:\/\/([^/]+)$/.exec(origin);
  return match?.[1] !== undefined && LOCAL_NAMES.has(withoutPort(match[1]));
}

const refusal = (because: string): BerthError =>
  berthError('invalid_api_key', `Only calls from this machine itself are accepted here, and ${because}.`);
