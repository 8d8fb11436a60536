import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface EmbeddedNode {
  /** The same over every restart. */
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  readonly pid: number;
  /** Kills it as a power cut would; settles when it is gone. */
  kill9(): Promise<void>;
  /** Starts it again over the same data and on the same port. */
  restart(): Promise<void>;
  /** Stops the process where it stands (SIGSTOP) or lets it go on (SIGCONT): the connection stays, nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Ends it in order, and removes the data when they were made here. */
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;

/** Built by `tsc -b apps/event-node`; the same file whether this runs from source or from `dist`. */
const entry = (): string => {
  const here = fileURLToPath(import.meta.url);
  const root = here.split(/[\\/](?:dist[\\/])?libs[\\/]events[\\/]/)[0] ?? process.cwd();
  return join(root, 'dist/apps/event-node/src/main.js');
};

/**
 * Starts a real embedded node in a process of its own, over `dir` or a temporary folder. It keeps its port over
 * restarts, so that clients find it again. Without TLS and a password unless it is to be `secure`.
 */
export async function startEmbeddedNode(
  dir?: string,
  options: { readonly secure?: boolean } = {},
): Promise<EmbeddedNode> {
  const made = dir === undefined;
  const data = dir ?? mkdtempSync(join(tmpdir(), 'berth-node-'));
  const port = await freePort();
  const secure = options.secure ?? false;
  let { child, url } = await launch(data, port, secure);
  return {
    get url() {
      return url;
    },
    port,
    dir: data,
    get pid() {
      return child.pid ?? -1;
    },
    async kill9() {
      await end(child, 'SIGKILL');
    },
    async restart() {
      await end(child, 'SIGKILL');
      ({ child, url } = await launch(data, port, secure));
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGCONT');
      await end(child, 'SIGTERM');
      if (made) rmSync(data, { recursive: true, force: true });
    },
  };
}

interface Ready {
  readonly berth?: string;
  readonly message?: string;
  readonly details?: { readonly url?: string; readonly connectionFile?: string };
}

async function launch(
  data: string,
  port: number,
  secure: boolean,
): Promise<{ child: ChildProcess; url: string }> {
  const args = ['--port', String(port), '--data', data, ...(secure ? [] : ['--insecure'])];
  const child = fork(entry(), args, {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  let said = '';
  const keep = (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-4000));
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const details = await new Promise<Ready['details']>((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(
        new Error(
          `The embedded node ${why}. Build it first: npx tsc -b apps/event-node. Its last words:\n${said}`,
        ),
      );
    };
    const timer = setTimeout(() => fail(`was not ready within ${READY_WITHIN_MS} ms`), READY_WITHIN_MS);
    child.on('message', (message: Ready) => {
      if (message.berth === 'ready') {
        clearTimeout(timer);
        resolve(message.details);
      } else if (message.berth === 'failed') {
        clearTimeout(timer);
        fail(`could not start: ${message.message ?? ''}`);
      }
    });
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      fail(`ended with ${signal ?? `code ${code ?? 'unknown'}`}`);
    });
  });
  child.removeAllListeners('exit');
  // The address with its password stands in a file that only its owner may read.
  const url = secure ? readFileSync(details?.connectionFile ?? '', 'utf8').trim() : details?.url;
  if (!url) throw new Error('The embedded node did not say where it serves.');
  return { child, url };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await gone;
  clearTimeout(timer);
}

/** A port that was free a moment ago: the node must come back on the same one after a kill. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}
