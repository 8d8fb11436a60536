import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

/** Whether something could listen there now; the reason when not. */
export function portFault(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(error));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** A sentence for a port or a host that cannot be used, with the flag that helps. */
export async function describePortFault(
  host: string,
  port: number,
  fault: NodeJS.ErrnoException,
): Promise<string> {
  if (fault.code === 'EADDRINUSE') {
    const holder = listenerOf(port);
    const by = holder === undefined ? 'by another program' : `by ${holder.name} (pid ${holder.pid})`;
    const free = await freePortAfter(host, port);
    return `Port ${port} on ${host} is taken ${by}. Name another one with --port${free === undefined ? '' : `, for example \`--port ${free}\``}.`;
  }
  if (fault.code === 'EACCES') {
    return `This user may not listen on port ${port}. Name one from 1024 on with --port.`;
  }
  if (fault.code === 'EADDRNOTAVAIL' || fault.code === 'ENOTFOUND') {
    return `This machine has no address ${host} (${fault.code}). Name one of its own with --host.`;
  }
  return `Nothing can listen on ${host}:${port}: ${fault.message}. Name another port with --port.`;
}

async function freePortAfter(host: string, port: number): Promise<number | undefined> {
  for (let candidate = port + 1; candidate <= Math.min(port + 20, 65_535); candidate++) {
    if ((await portFault(host, candidate)) === undefined) return candidate;
  }
  return undefined;
}

/** The process that listens on a TCP port, where /proc tells it and it may be read. */
export function listenerOf(port: number): { pid: number; name: string } | undefined {
  const sockets = new Set<string>();
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of tryRead(() => readFileSync(file, 'utf8'), '')
      .split('\n')
      .slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      // 0A is LISTEN; the port is in hexadecimal after the address.
      if (state === '0A' && parseInt(local.split(':')[1] ?? '', 16) === port)
        sockets.add(`socket:[${inode}]`);
    }
  }
  if (sockets.size === 0) return undefined;
  for (const pid of tryRead(() => readdirSync('/proc'), []).filter((name) => /^\d+$/.test(name))) {
    for (const fd of tryRead(() => readdirSync(`/proc/${pid}/fd`), [])) {
      if (sockets.has(tryRead(() => readlinkSync(`/proc/${pid}/fd/${fd}`), ''))) {
        return {
          pid: Number(pid),
          name: tryRead(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim(), '?'),
        };
      }
    }
  }
  return undefined;
}

/** Processes come and go, and those of others cannot be read: both are as good as absent. */
function tryRead<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
