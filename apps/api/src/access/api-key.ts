import { createHash, randomBytes } from 'node:crypto';

/** A key as it is shown once, and what is kept of it. */
export interface MintedKey {
  readonly keyId: string;
  /** `bk_<id>_<secret>`. Shown to who asked for it, and then forgotten. */
  readonly text: string;
  /** Of the secret, hex. */
  readonly sha256: string;
}

const SECRET_BYTES = 32;
const ID_BYTES = 6;
const TEXT = /^bk_([0-9a-f]{12})_([\w-]{43})$/;

/** 256 random bits behind an id that says which key it is without telling anything of it. */
export function mintKey(): MintedKey {
  const keyId = randomBytes(ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { keyId, text: `bk_${keyId}_${secret}`, sha256: hashOf(secret).toString('hex') };
}

/** Whether a text means to be a key of Berth: clients that must send some key send any word. */
export const claimsToBeKey = (text: string): boolean => text.startsWith('bk_');

/** @returns undefined when the text has not the form of a key. */
export function readKey(text: string): { readonly keyId: string; readonly hash: Buffer } | undefined {
  const match = TEXT.exec(text);
  const [, keyId, secret] = match ?? [];
  return keyId === undefined || secret === undefined ? undefined : { keyId, hash: hashOf(secret) };
}

const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
