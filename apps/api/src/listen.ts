import { once } from 'node:events';
import type { Server } from 'node:http';
import { BerthFailure, berthError } from '#domain/errors.js';

/** @throws BerthFailure with one sentence that names what to change, when the address cannot be had. */
export async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new BerthFailure(berthError('invalid_request', sentence(code, host, port)), { cause: error });
  }
}

function sentence(code: string | undefined, host: string, port: number): string {
  if (code === 'EADDRINUSE') {
    return `Port ${port} on ${host} is taken by another process. Choose another with --port (or BERTH_PORT), or stop that process.`;
  }
  if (code === 'EACCES') {
    return `This user may not listen on port ${port}. Choose one above 1023 with --port (or BERTH_PORT).`;
  }
  if (code === 'EADDRNOTAVAIL') {
    return `${host} is no address of this machine. Choose another with --host (or BERTH_HOST).`;
  }
  return `Berth cannot listen on ${host}:${port} (${code ?? 'unknown'}). Choose another with --host and --port.`;
}
