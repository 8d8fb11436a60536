import { createHash } from 'node:crypto';
import { realpathSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';

/**
 * Holds a home for one agent: two would act on the same decisions, and start every engine twice. It is a name that the
 * system lets go of with the process, however that ends, so nothing stale is ever left; where the system has no such names
 * it is a socket in the home that nobody answers.
 * @throws Error that says what to do, when an agent runs there.
 */
export async function takeHome(home: string): Promise<{ release(): void }> {
  const name = nameOf(home);
  let server = await listen(name);
  if (server === undefined && name.startsWith('/') && !(await isAnswered(name))) {
    rmSync(name, { force: true });
    server = await listen(name);
  }
  if (server === undefined) {
    throw new Error(
      `An agent already runs on ${home}: two would start each engine twice. Stop that one, or give this one a BERTH_HOME of its own.`,
    );
  }
  const held = server;
  return { release: () => void held.close() };
}

function nameOf(home: string): string {
  const digest = createHash('sha256').update(realpathSync(home)).digest('hex').slice(0, 32);
  if (process.platform === 'linux') return `\0berth-agent-${digest}`;
  return process.platform === 'win32' ? `\\\\.\\pipe\\berth-agent-${digest}` : join(home, 'agent.sock');
}

/** @returns undefined where somebody has the name. */
function listen(name: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(name, () => resolve(server.unref()));
  });
}

function isAnswered(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(name);
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => socket.destroy());
  });
}
