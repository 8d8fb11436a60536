import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { StartError } from '../errors.js';
import { readIfThere, writePrivateFile } from './private-files.js';
import type { UserSecret } from './users.js';

/** The administrator's credential, in a file that its owner alone reads: 256 random bits, made once. */
export function ensureAdmin(dataDir: string): UserSecret {
  const file = join(dataDir, 'credential');
  const known = readIfThere(file)?.trim();
  if (known) {
    const [name, secret] = known.split(':');
    if (name !== 'admin' || !secret || secret.length < 32) {
      throw new StartError(
        `The credential file ${file} does not hold 'admin:<secret>'. Remove it, and a new one is made at the next start.`,
      );
    }
    return { name, secret };
  }
  const made = { name: 'admin', secret: randomBytes(32).toString('hex') };
  writePrivateFile(file, `${made.name}:${made.secret}\n`);
  return made;
}
