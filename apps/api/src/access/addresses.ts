import { BlockList, isIP } from 'node:net';

/** Ranges that no router of the internet forwards; `private` in a list of networks. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fd00::/8', 'fe80::/10'];

/** `::ffff:10.0.0.1` → `10.0.0.1`, `fe80::1%eth0` → `fe80::1`: one address, one text. */
export function plainAddress(address: string): string {
  const zone = address.indexOf('%');
  const bare = zone < 0 ? address : address.slice(0, zone);
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(bare) ? bare.slice('::ffff:'.length) : bare;
}

export const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

/** `10.0.0.0/8`, `192.168.1.5`, `fd00::/8` or `private`. */
export function isNetwork(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  if (text === 'private') return true;
  const [address = '', prefix, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

/** A list of networks; what is no network in it is passed over. */
export class Networks {
  readonly #list = new BlockList();
  readonly #empty: boolean;

  constructor(texts: readonly string[]) {
    const networks = texts.filter(isNetwork).flatMap((text) => (text === 'private' ? PRIVATE : [text]));
    this.#empty = networks.length === 0;
    for (const network of networks) {
      const [address = '', prefix] = network.split('/');
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
      if (prefix === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(prefix), family);
    }
  }

  has(address: string): boolean {
    if (this.#empty) return false;
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  }
}
