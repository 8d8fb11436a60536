import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { StartError } from '../errors.js';
import { readIfThere, writePrivateFile } from './private-files.js';
import { ROLES } from './roles.js';
import type { UserSecret } from './users.js';

export const ADMIN = 'admin';

/** The file with a user's credential, `<name>:<secret>`. */
export const credentialFile = (dataDir: string, name: string): string =>
  join(dataDir, name === ADMIN ? 'credential' : `credential-${name}`);

/** The file with a user's whole connection string. */
export const connectionFile = (dataDir: string, name: string): string =>
  join(dataDir, name === ADMIN ? 'connection' : `connection-${name}`);

/** The administrator and one user per role; each credential has 256 random bits and is made once. */
export const ensureCredentials = (dataDir: string): readonly UserSecret[] =>
  [ADMIN, ...ROLES].map((name) => ensureCredential(dataDir, name));

function ensureCredential(dataDir: string, name: string): UserSecret {
  const file = credentialFile(dataDir, name);
  const known = readIfThere(file)?.trim();
  if (known === undefined || known === '') {
    const made = { name, secret: randomBytes(32).toString('hex') };
    writePrivateFile(file, `${name}:${made.secret}\n`);
    return made;
  }
  const [found, secret] = known.split(':');
  if (found !== name || !secret || secret.length < 32) {
    throw new StartError(
      `The credential file ${file} does not hold '${name}:<secret>'. Remove it, and a new one is made at the next start.`,
    );
  }
  return { name, secret };
}
