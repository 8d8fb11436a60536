import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

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

/** A busy machine takes seconds to start a program. */
const BIND_MS = 15_000;
const UNTOLD_MS = 1000;

/**
 * Whether an engine may be asked on its port: once it, or one of its family, listens there. Until then whoever answers is
 * another program, which took the port between its choice and the engine's bind.
 */
export class PortWatch {
  #listens = false;
  readonly #startedMs = performance.now();

  /** @param family pids of what the engine is and has forked: a script may start the one that listens */
  constructor(
    private readonly port: number,
    private readonly pid: number,
    private readonly family: () => readonly number[],
    private readonly patienceMs: number,
  ) {}

  /** It was seen to have its port, or nothing can be seen. */
  mayAsk(): boolean {
    if (this.#listens) return true;
    const listener = listenerOf(this.port, [this.pid]);
    this.#listens =
      listener === 'itself' || (listener === 'another' && listenerOf(this.port, this.family()) === 'itself');
    if (this.#listens) return true;
    // Where the system does not tell who listens, one that cannot have its port is given a moment to end.
    const waitMs = Math.min(listener === undefined ? UNTOLD_MS : BIND_MS, this.patienceMs);
    return performance.now() - this.#startedMs > waitMs;
  }

  /** It is gone: whether for want of its port. */
  wasTaken(log: string): boolean {
    return !this.#listens && saysPortIsTaken(log);
  }
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
