import { isIP } from 'node:net';
import { isLoopback, plainAddress } from './addresses.js';
import type { Door } from './door-settings.js';

/** What the door looks at; both node:http requests and Fastify's have it. */
export interface Visitor {
  /** Address of the immediate peer. */
  readonly peer: string | undefined;
  readonly method?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Where a request comes from, and what keeps it from coming in without a key. */
export interface Whereabouts {
  readonly from: 'local' | 'trusted' | 'outside';
  /** Of the client, behind its proxies. */
  readonly address: string;
  /** Ends the sentence "a key is needed, since". */
  readonly because: string;
}

const LOCAL_NAMES = new Set(['localhost', '127.0.0.1', '[::1]']);
/** Names that no page of the internet can have: a rebound name is none of them. */
const NAMES_OF_LAN = /^[^.]+$|\.(?:local|lan|internal|home\.arpa)$/;

export const headerOf = (visitor: Visitor, name: string): string | undefined => {
  const value = visitor.headers[name];
  return typeof value === 'string' ? value : value?.[0];
};

/** `localhost:8080` → `localhost`; `[::1]:8080` → `[::1]`. */
const withoutPort = (host: string): string => host.replace(/:\d+$/, '').toLowerCase();

/**
 * A request with a forwarding header counts as outside unless its peer is a listed proxy; then the right-most address
 * that is none of the listed proxies is the client's.
 */
export function whereabouts(visitor: Visitor, door: Door): Whereabouts {
  if (visitor.peer === undefined) return outside('an unknown address', 'its address is not known');
  const peer = plainAddress(visitor.peer);
  const forwarded = forwardingHeader(visitor);
  if (forwarded === undefined) {
    if (isLoopback(peer)) return { from: 'local', address: peer, because: '' };
    if (door.networks.has(peer)) return { from: 'trusted', address: peer, because: '' };
    return outside(peer, `this call came from ${peer}, which is in no trusted network`);
  }
  if (!door.proxies.has(peer)) {
    return outside(
      peer,
      `its header ${forwarded} says that it was forwarded, and ${peer} is no trusted proxy`,
    );
  }
  const client = forwardedFor(visitor)
    .reverse()
    .find((address) => !door.proxies.has(address));
  if (client === undefined) return outside(peer, `the proxy ${peer} names no client`);
  if (isIP(client) !== 0 && door.networks.has(client))
    return { from: 'trusted', address: client, because: '' };
  return outside(client, `this call came from ${client.slice(0, 64)}, which is in no trusted network`);
}

const outside = (address: string, because: string): Whereabouts => ({ from: 'outside', address, because });

function forwardingHeader(visitor: Visitor): string | undefined {
  for (const name in visitor.headers) {
    if (name === 'forwarded' || name.startsWith('x-forwarded-')) return name;
  }
  return undefined;
}

/** The addresses that proxies wrote, in their order: `X-Forwarded-For`, else the `for` of `Forwarded`. */
function forwardedFor(visitor: Visitor): string[] {
  const all = (name: string): string => {
    const value = visitor.headers[name];
    return typeof value === 'string' ? value : (value ?? []).join(',');
  };
  const plain = all('x-forwarded-for');
  const hops = plain === '' ? all('forwarded').split(',').map(forOf) : plain.split(',');
  return hops.map((hop) => plainAddress(hostOf(hop.trim()))).filter((address) => address !== '');
}

const forOf = (hop: string): string => /(?:^|;)\s*for="?([^";]+)"?/i.exec(hop)?.[1] ?? 'unknown';

/** `1.2.3.4:567` → `1.2.3.4`, `[fd00::1]:567` → `fd00::1`. */
const hostOf = (hop: string): string =>
  /^\[([^\]]+)\]/.exec(hop)?.[1] ?? (/^[^:]+:\d+$/.test(hop) ? (hop.split(':')[0] ?? hop) : hop);

/** @returns what is wrong with the name that a keyless call gave this server; undefined when it is a name of its own. */
export function whyHostIsForeign(visitor: Visitor, from: 'local' | 'trusted'): string | undefined {
  const host = withoutPort(headerOf(visitor, 'host') ?? '');
  if (LOCAL_NAMES.has(host)) return undefined;
  if (from === 'local') return `its Host is "${host}", which is not localhost, 127.0.0.1 or [::1]`;
  const address = /^\[([^\]]+)\]$/.exec(host)?.[1] ?? host;
  if (isIP(address) !== 0 || (host !== '' && NAMES_OF_LAN.test(host))) return undefined;
  return `its Host is "${host}", which is neither an address nor a name of a local network`;
}

/** A page of this machine, or one that this very server gave. */
export function isOwnOrigin(visitor: Visitor, origin: string): boolean {
  const host = /^https?:\/\/([^/]+)$/.exec(origin)?.[1]?.toLowerCase();
  if (host === undefined) return false;
  return LOCAL_NAMES.has(withoutPort(host)) || host === headerOf(visitor, 'host')?.toLowerCase();
}
