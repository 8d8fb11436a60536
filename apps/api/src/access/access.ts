import { type BerthError, berthError } from '#domain/errors.js';
import { err, ok, type Result } from '#domain/result.js';
import { claimsToBeKey } from './api-key.js';
import type { Door, DoorSettings } from './door-settings.js';
import type { Keyring } from './keyring.js';
import {
  headerOf,
  isOwnOrigin,
  type Visitor,
  whereabouts,
  type Whereabouts,
  whyHostIsForeign,
} from './visitor.js';
import { WrongKeys } from './wrong-keys.js';

/** Who is in: with a key, or from a place where none is needed. */
export interface Caller {
  readonly keyId?: string;
  readonly rights: 'use' | 'admin';
  /** The only models that the key opens; absent: all. */
  readonly models?: readonly string[];
}

export interface Refusal {
  readonly error: BerthError;
  /** Wrong keys are answered late. */
  readonly delayMs: number;
}

const LOCAL: Result<Caller, Refusal> = ok({ rights: 'admin' });
const TRUSTED: Result<Caller, Refusal> = ok({ rights: 'use' });
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Who may come in. Answers in memory and at once: the settings and the keys are folded. */
export class Access {
  readonly #door: Pick<DoorSettings, 'now'>;
  readonly #keys: Keyring;
  readonly #now: () => number;
  readonly #wrongKeys: WrongKeys;

  constructor(parts: { door: Pick<DoorSettings, 'now'>; keys: Keyring; now: () => number }) {
    this.#door = parts.door;
    this.#keys = parts.keys;
    this.#now = parts.now;
    this.#wrongKeys = new WrongKeys(parts.now);
  }

  /** The data plane: no key from this machine or a trusted network. */
  calls(visitor: Visitor): Result<Caller, Refusal> {
    const door = this.#door.now;
    const where = whereabouts(visitor, door);
    const keyed = this.#keyed(visitor, where);
    if (keyed) return keyed;
    const why = whyNotKeyless(visitor, where, door);
    if (why !== undefined) return this.#keyNeeded(visitor, where, why);
    return where.from === 'local' ? LOCAL : TRUSTED;
  }

  /** Management: an admin key except from this machine; a write by a page of elsewhere never. */
  management(visitor: Visitor): Result<Caller, Refusal> {
    const where = whereabouts(visitor, this.#door.now);
    const keyed = this.#keyed(visitor, where);
    if (keyed && !keyed.ok) return keyed;
    const origin = headerOf(visitor, 'origin');
    const foreign = origin !== undefined && !isOwnOrigin(visitor, origin);
    if (keyed) {
      if (keyed.value.rights !== 'admin') {
        return refused('forbidden', 'This key is for calls to models. Management needs one of scope admin.');
      }
      if (foreign && !READS.has(visitor.method ?? 'GET')) {
        return refused('forbidden', `A page of ${origin.slice(0, 200)} may not change anything here.`);
      }
      return keyed;
    }
    const why =
      where.from === 'trusted'
        ? 'management asks for an admin key from everywhere but this machine'
        : whyNotKeyless(visitor, where, undefined);
    return why === undefined ? LOCAL : this.#keyNeeded(visitor, where, why);
  }

  /** Whether callers that wait may be sent interim answers. */
  get interimAnswers(): boolean {
    return this.#door.now.interimAnswers;
  }

  /** The value of `Access-Control-Allow-Origin` for a page's request; undefined when its page may not read answers. */
  allowedOrigin(visitor: Visitor): string | undefined {
    const origin = headerOf(visitor, 'origin');
    if (origin === undefined) return undefined;
    const { origins } = this.#door.now;
    if (origins.has(origin.toLowerCase())) return origin;
    return origins.has('*') ? '*' : undefined;
  }

  /** A key that is presented is checked even where none is needed; any other word that a client must send is not one. */
  #keyed(visitor: Visitor, where: Whereabouts): Result<Caller, Refusal> | undefined {
    const text = presented(visitor);
    if (text === undefined || !claimsToBeKey(text)) return undefined;
    const key = this.#keys.check(text, this.#now());
    if (!key.ok) return err({ error: key.error, delayMs: this.#wrongKeys.delayMs(where.address) });
    const { keyId, scope, models } = key.value;
    return ok({ keyId, rights: scope, ...(models ? { models } : {}) });
  }

  #keyNeeded(visitor: Visitor, where: Whereabouts, why: string): Result<Caller, Refusal> {
    const given = presented(visitor);
    const message =
      `An API key is needed, since ${why}. ${given === undefined ? 'Send' : 'What was sent is no key of Berth; send'} ` +
      'one as "Authorization: Bearer bk_…"; `berth keys create NAME` makes one on the machine of Berth.';
    const delayMs = given === undefined ? 0 : this.#wrongKeys.delayMs(where.address);
    return err({ error: berthError('invalid_api_key', message), delayMs });
  }
}

/** @returns what keeps a visitor from coming in without a key. */
function whyNotKeyless(visitor: Visitor, where: Whereabouts, door: Door | undefined): string | undefined {
  if (where.from === 'outside') return where.because;
  const host = whyHostIsForeign(visitor, where.from);
  if (host !== undefined) return host;
  const origin = headerOf(visitor, 'origin');
  if (origin === undefined || isOwnOrigin(visitor, origin)) return undefined;
  // A page that was named may; `*` lets pages of everywhere read answers, and none of them in without a key.
  if (door?.origins.has(origin.toLowerCase()) === true) return undefined;
  return `it was made by a page of ${origin.slice(0, 200)}`;
}

/** As OpenAI's, Anthropic's and Azure's clients send it; a key of Berth before any other word. */
function presented(visitor: Visitor): string | undefined {
  const authorization = headerOf(visitor, 'authorization');
  const texts = [
    authorization === undefined ? undefined : authorization.replace(/^Bearer\s+/i, '').trim(),
    headerOf(visitor, 'x-api-key'),
    headerOf(visitor, 'api-key'),
  ];
  return texts.find((text) => text !== undefined && claimsToBeKey(text)) ?? texts.find((text) => text);
}

const refused = (code: 'forbidden', message: string): Result<never, Refusal> =>
  err({ error: berthError(code, message), delayMs: 0 });
