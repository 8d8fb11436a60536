import { createHmac, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A secret of this home, 256 random bits as hex in a file that only its owner may read; made at the first call.
 * Two processes that make it at once agree: the file is created exclusively, and the loser reads the winner's.
 */
export function localSecret(home: string, name: string): string {
  const folder = join(home, 'secrets');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, name);
  try {
    const secret = randomBytes(32).toString('hex');
    writeFileSync(file, secret, { flag: 'wx', mode: 0o600 });
    return secret;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readFileSync(file, 'utf8').trim();
  }
}

/** The key that an engine asks of its callers: derived, so that api and agent know it and no event carries it. */
export const engineKey = (home: string, residentId: string): string =>
  createHmac('sha256', localSecret(home, 'engine-key')).update(residentId).digest('hex');

/** What an agent shows when it dials an api of the same home. */
export const agentLineToken = (home: string): string => localSecret(home, 'agent-line');
