import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { LoadFailure } from '../ports.js';

/** A port of loopback that is free now. Another may take it before the engine does. */
export function freeLoopbackPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address) resolve(address.port);
        else reject(new Error('The system gave no port.'));
      });
    });
  });
}

export const PORT_TAKEN =
  'another program took the port of an engine before it did: it is started on another';

const MOST_PORTS = 3;

interface WithPort {
  readonly exited: Promise<unknown>;
  bound(): Promise<'bound' | 'taken' | 'unknown'>;
}

/**
 * Starts an engine on a free port. When another program takes the port between its choice and the engine's bind, the
 * engine ends, and is started again on another: its start is told only once it has its port, or ends for another reason.
 * @throws LoadFailure when that happens again and again.
 */
export async function launchOnFreePort<E extends WithPort>(
  freePort: () => Promise<number>,
  launch: (port: number) => Promise<E>,
  onTaken: (port: number) => void,
): Promise<E> {
  const taken: number[] = [];
  while (taken.length < MOST_PORTS) {
    const port = await freePort();
    const engine = await launch(port);
    if ((await engine.bound()) !== 'taken') return engine;
    // Its files are removed at its end: those of the next one bear the same name.
    await engine.exited;
    taken.push(port);
    onTaken(port);
  }
  throw new LoadFailure(
    'exited',
    `The ports ${taken.join(', ')} were each taken by another program before the engine had them.`,
    '',
  );
}

/** What engines write when they cannot have their port. */
export const saysPortIsTaken = (log: string): boolean =>
  /EADDRINUSE|address already in use|couldn'?t bind|failed to bind/i.test(log);

/**
 * Who listens on a port of loopback: one of these processes, another, no one yet; undefined where the system has no
 * /proc.
 */
export function listenerOf(
  port: number,
  pids: readonly number[],
): 'itself' | 'another' | 'no-one' | undefined {
  let table: string;
  try {
    table = readFileSync('/proc/self/net/tcp', 'utf8');
  } catch {
    return undefined;
  }
  const sockets = new Set(listeningInodes(table, port).map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return 'no-one';
  return pids.some((pid) => filesOf(pid).some((link) => sockets.has(link))) ? 'itself' : 'another';
}

const LISTEN = '0A';

/** Of lines such as `0: 0100007F:1F90 00000000:0000 0A … 0 0 31337 …`. */
export function listeningInodes(table: string, port: number): readonly string[] {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const [, local = '', , state = ''] = fields;
    const inode = fields[9];
    return state === LISTEN && local.endsWith(ending) && inode !== undefined ? [inode] : [];
  });
}

/** What a process has open; nothing when it is gone or another's. */
function filesOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        // Closed between the two looks.
        return '';
      }
    });
  } catch {
    return [];
  }
}
