import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findBinaries } from './binaries.js';
import { lastLines, prepareCluster, ROLE, serverPid, socketFolder, stopLeftover } from './cluster.js';
import { chooseRunAs, giveTo, type RunAs } from './run-as.js';
import { waitFor } from '../wait.js';

export interface EmbeddedPostgresOptions {
  /** Data, socket and links lie below it; made with mode 0700. One server per folder. */
  readonly folder: string;
  readonly logFile: string;
  /** Recovery after a crash may take a while. */
  readonly readyWithinMs?: number;
  /** Gives up a start that nobody waits for any more; nothing of it is left. */
  readonly signal?: AbortSignal;
}

export interface EmbeddedPostgres {
  /** A connection string for `pg`: unix socket, no password; the folder is closed to others. */
  readonly url: string;
  readonly version: string;
  /** Something a person should read: data that were set aside, for example. */
  readonly note?: string;
  /** Fulfilled when the server has ended, asked or not, with what is known of why. */
  readonly ended: Promise<string>;
  /** Fast stop (connections are cut, data are flushed), then immediate, then by force. */
  stop(withinMs?: number): Promise<void>;
}

const PORT = 5432;

/**
 * The server runs in a session of its own, so that Ctrl-C does not reach it before its turn; this watchdog ties it to us
 * all the same: it holds the other end of a pipe, and stops the server when the pipe closes, however we ended.
 */
const WATCHDOG = `
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
( read -r _ <&3; kill -INT "$server" ) >/dev/null 2>&1 &
watcher=$!
wait "$server"
code=$?
kill "$watcher" 2>/dev/null
exit "$code"
`;

/** @throws Error with a sentence that a person can act on. */
export async function startPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { folder } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const binaries = findBinaries(folder);
  const env = { ...process.env, ...binaries.env, LC_ALL: 'C', TZ: 'UTC' };
  const as = chooseRunAs(folder, binaries.postgres, env);
  giveTo(as, folder);
  const data = join(folder, 'data');
  await stopLeftover(data);
  const note = await prepareCluster(binaries, as, folder, env, options.signal);
  options.signal?.throwIfAborted();
  const socket = socketFolder(folder, as);
  const started = spawnServer(binaries.postgres, as, data, socket, options.logFile, env);
  const url = `postgresql://${ROLE}@localhost:${PORT}/${ROLE}?host=${encodeURIComponent(socket)}`;
  try {
    await answering(url, started, options.readyWithinMs ?? 120_000, options.signal);
  } catch (error) {
    await started.stop(5_000);
    throw error;
  }
  return {
    url,
    version: binaries.version.replace(/^(\d+\.\d+).*/, '$1'),
    ...(note === undefined ? {} : { note }),
    ended: started.ended,
    stop: (withinMs) => started.stop(withinMs),
  };
}

interface Server {
  readonly data: string;
  readonly ended: Promise<string>;
  hasEnded(): boolean;
  stop(withinMs?: number): Promise<void>;
}

function spawnServer(
  postgres: string,
  as: RunAs,
  data: string,
  socket: string,
  logFile: string,
  env: NodeJS.ProcessEnv,
): Server {
  const settings = {
    listen_addresses: '',
    port: String(PORT),
    unix_socket_directories: `"${socket.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: '40',
    shared_buffers: '64MB',
    max_wal_size: '512MB',
    log_checkpoints: 'off',
    log_timezone: 'UTC',
  };
  const { file, args } = as.command(postgres, [
    '-D',
    data,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]);
  mkdirSync(dirname(logFile), { recursive: true, mode: 0o700 });
  const from = existsSync(logFile) ? statSync(logFile).size : 0;
  const log = openSync(logFile, 'a', 0o600);
  let watchdog: ChildProcess;
  try {
    watchdog = spawn('/bin/sh', ['-c', WATCHDOG, 'berth-postgres', file, ...args], {
      cwd: '/',
      env,
      detached: true,
      stdio: ['pipe', log, log],
    });
  } finally {
    closeSync(log);
  }
  // The pipe is only ever closed; a watchdog that is already gone answers with EPIPE, which says nothing new.
  watchdog.stdin?.on('error', () => undefined);
  let over = false;
  const ended = new Promise<string>((resolve) => {
    const end = (why: string) => {
      over = true;
      resolve(why);
    };
    watchdog.once('error', (error) => end(error.message));
    watchdog.once('exit', (code, signal) =>
      end(
        `exit ${signal ?? String(code)}: ${lastLines(existsSync(logFile) ? readFileSync(logFile).subarray(from).toString() : '')}`,
      ),
    );
  });
  const stop = async (withinMs = 10_000): Promise<void> => {
    if (over) return;
    watchdog.stdin?.end();
    if (await waitFor(() => over, withinMs)) return;
    for (const signal of ['SIGQUIT', 'SIGKILL'] as const) {
      const pid = serverPid(data);
      if (pid !== undefined) process.kill(pid, signal);
      if (await waitFor(() => over, 5_000)) return;
    }
    throw new Error(
      `The embedded Postgres of ${data} does not stop. End the process that its postmaster.pid names.`,
    );
  };
  return { data, ended, hasEnded: () => over, stop };
}

/** Ready is what answers a query; the database is made the first time. */
async function answering(
  url: string,
  server: Server,
  withinMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    signal?.throwIfAborted();
    if (server.hasEnded()) {
      throw new Error(
        `The embedded Postgres did not start (${await server.ended}). It holds only views: when its data are damaged, move ${server.data} away and start again; they are rebuilt from the log.`,
      );
    }
    try {
      await query(url, 'SELECT 1');
      return;
    } catch (error) {
      const code = (error as { code?: string }).code;
      if (code === '3D000') {
        await query(url.replace(`/${ROLE}?`, '/postgres?'), `CREATE DATABASE ${ROLE}`);
        continue;
      }
      // Not there yet, or still recovering.
      if (code !== 'ENOENT' && code !== 'ECONNREFUSED' && code !== 'ECONNRESET' && code !== '57P03')
        throw error;
      if (performance.now() > deadline) {
        throw new Error(
          `The embedded Postgres did not answer within ${Math.round(withinMs / 1000)} s; its log is beside the others in the logs folder.`,
          { cause: error },
        );
      }
    }
    await sleep(10);
  }
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
