import { timingSafeEqual } from 'node:crypto';
import { type BerthError, berthError } from '#domain/errors.js';
import type { Recorded } from '#domain/events/envelope.js';
import type { KeyEvent } from '#domain/events/other-events.js';
import { evolveKey, initialKey, type KeyState, whyUnusable } from '#domain/keys/key.js';
import { err, ok, type Result } from '#domain/result.js';
import { readKey } from './api-key.js';

export type IssuedKey = NonNullable<KeyState['issued']>;

interface Held {
  readonly state: KeyState;
  readonly hash: Buffer;
}

/** As long as a hash, and the hash of nothing: what an unknown id is compared with. */
const NOBODYS = Buffer.alloc(32);

/** Every key of the log, folded and kept warm, so that a key is checked in memory. */
export class Keyring {
  readonly #keys = new Map<string, Held>();

  fold(keyId: string, recorded: Recorded<KeyEvent>): void {
    const before = this.#keys.get(keyId)?.state ?? initialKey();
    const state = evolveKey(before, recorded);
    if (state === before) return;
    this.#keys.set(keyId, { state, hash: Buffer.from(state.issued?.sha256 ?? '', 'hex') });
  }

  of(keyId: string): KeyState {
    return this.#keys.get(keyId)?.state ?? initialKey();
  }

  /**
   * Compares in constant time, an unknown id too. What is said of a key beyond "wrong" is said to who has its secret.
   * @returns the key, or `invalid_api_key`.
   */
  check(text: string, nowMs: number): Result<IssuedKey> {
    const read = readKey(text);
    if (!read) return err(wrong('it has not the form bk_<id>_<secret>'));
    const held = this.#keys.get(read.keyId);
    const expected = held?.hash.length === NOBODYS.length ? held.hash : NOBODYS;
    const same = timingSafeEqual(read.hash, expected);
    if (!held?.state.issued || !same) return err(wrong('no such key was issued'));
    const why = whyUnusable(held.state, nowMs);
    if (why !== undefined) return err(wrong(`the key "${held.state.issued.name}" is ${why}`));
    return ok(held.state.issued);
  }
}

const wrong = (because: string): BerthError =>
  berthError(
    'invalid_api_key',
    `The API key cannot be used: ${because}. \`berth keys\` lists the keys there are, \`berth keys create NAME\` makes one.`,
  );
