import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROLE, serverPid } from './cluster.js';

/** Address of the embedded Postgres that runs below a home; undefined when none does. It says itself where its socket is. */
export function runningPostgres(home: string): string | undefined {
  const data = join(home, 'postgres', 'data');
  if (serverPid(data) === undefined) return undefined;
  const [, , , port, socket] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  if (port === undefined || socket === undefined) return undefined;
  return `postgresql://${ROLE}@localhost:${port}/${ROLE}?host=${encodeURIComponent(socket)}`;
}
