import { Inject, Injectable } from '@nestjs/common';
import type { KeyEvent } from '#domain/events/other-events.js';
import { revokeKey } from '#domain/keys/key.js';
import { streams } from '#events/streams.js';
import { mintKey } from '../../access/api-key.js';
import { Fleet } from '../../fleet/fleet.js';
import { CommandLog, expecting, type Written } from '../commands/command-log.js';
import { fail } from '../problem/fail.js';
import type { CreateKey } from './keys.dto.js';

export interface CreatedKey extends Written {
  readonly keyId: string;
  readonly name: string;
  readonly scope: 'use' | 'admin';
  readonly expiresAt?: string;
  readonly models?: readonly string[];
  /** Shown here and never again. */
  readonly key: string;
}

/** Written by others between our look and our append; more would be no accident. */
const TRIES = 3;

@Injectable()
export class KeysService {
  readonly #log: CommandLog;
  readonly #fleet: Fleet;

  constructor(@Inject(CommandLog) log: CommandLog, @Inject(Fleet) fleet: Fleet) {
    this.#log = log;
    this.#fleet = fleet;
  }

  async create(asked: CreateKey): Promise<CreatedKey> {
    const { name, scope = 'use', models } = asked;
    const expiresAt = asked.expiresAt === undefined ? undefined : new Date(asked.expiresAt).toISOString();
    const { keyId, text, sha256 } = mintKey();
    const more = { ...(expiresAt === undefined ? {} : { expiresAt }), ...(models ? { models } : {}) };
    const issued: KeyEvent = { type: 'KeyIssued', data: { keyId, name, scope, sha256, ...more } };
    const written = await this.#log.append(streams.key(keyId), issued, 'no-stream');
    if (!written) throw new Error(`The key id ${keyId} is taken.`);
    // This api honours it before it is shown; others do when their subscription brings it.
    await this.#fleet.catchUpKey(keyId);
    return { keyId, name, scope, ...more, key: text, ...written };
  }

  /** The same revocation twice is one; the second writes nothing. */
  async revoke(keyId: string, by: string): Promise<{ readonly keyId: string } & Partial<Written>> {
    for (let tries = 1; tries <= TRIES; tries += 1) {
      await this.#fleet.catchUpKey(keyId);
      const state = this.#fleet.keys.of(keyId);
      const decided = revokeKey(state, by);
      if (!decided.ok) {
        const message = `There is no key ${keyId}. GET /admin/keys lists the keys there are.`;
        fail('not_found', message, 'id');
      }
      const [event] = decided.value;
      if (!event) return { keyId, revision: state.revision };
      const written = await this.#log.append(streams.key(keyId), event, expecting(state.revision));
      if (!written) continue;
      await this.#fleet.catchUpKey(keyId);
      return { keyId, ...written };
    }
    fail('conflict', `Others change the key ${keyId} just now. Try again.`);
  }
}
