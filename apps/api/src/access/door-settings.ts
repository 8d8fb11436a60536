import type { FoldedSettings } from '../fleet/settings.js';
import { isNetwork, Networks } from './addresses.js';

/** Settings of the fleet that say who may come in, and how they are kept; placement knows nothing of them. */
export interface DoorKnob {
  readonly check: (value: unknown) => boolean;
  /** Ends the sentence "must be". */
  readonly must: string;
  readonly default: readonly string[] | boolean;
}

const listOf =
  (each: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(each);

const isOrigin = (value: unknown): boolean => {
  if (value === '*') return true;
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, host } = new URL(value);
  return host !== '' && `${protocol}//${host}` === value.toLowerCase();
};

const NETWORKS = 'a list of addresses and networks such as 192.168.1.0/24, or "private"';

export const DOOR_KNOBS: Readonly<Record<string, DoorKnob>> = {
  trustedNetworks: { check: listOf(isNetwork), must: NETWORKS, default: [] },
  trustedProxies: { check: listOf(isNetwork), must: NETWORKS, default: [] },
  corsOrigins: {
    check: listOf(isOrigin),
    must: 'a list of origins such as https://chat.example, or "*"',
    default: [],
  },
  interimAnswers: {
    check: (value) => typeof value === 'boolean',
    must: 'true or false',
    default: true,
  },
};

/** What the door knows, made ready for being asked at every request. */
export interface Door {
  readonly networks: Networks;
  readonly proxies: Networks;
  readonly origins: ReadonlySet<string>;
  /** Whether callers that wait get `102 Processing`; some proxies and older clients cannot take it. */
  readonly interimAnswers: boolean;
}

/** The door's settings, read again only when some setting changed. */
export class DoorSettings {
  readonly #settings: Pick<FoldedSettings, 'version' | 'of'>;
  #read: { readonly version: number; readonly door: Door } | undefined;

  constructor(settings: Pick<FoldedSettings, 'version' | 'of'>) {
    this.#settings = settings;
  }

  get now(): Door {
    const { version } = this.#settings;
    if (this.#read?.version !== version) this.#read = { version, door: this.#door() };
    return this.#read.door;
  }

  #door(): Door {
    return {
      networks: new Networks(this.#list('trustedNetworks')),
      proxies: new Networks(this.#list('trustedProxies')),
      origins: new Set(this.#list('corsOrigins').map((origin) => origin.toLowerCase())),
      interimAnswers: this.#value('interimAnswers') !== false,
    };
  }

  /** A value that cannot stand counts as absent: the door stays closed. */
  #list(name: string): readonly string[] {
    const value = this.#value(name);
    return DOOR_KNOBS[name]?.check(value) === true ? (value as readonly string[]) : [];
  }

  #value(name: string): unknown {
    return this.#settings.of('fleet')?.values.get(name)?.value;
  }
}
