import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '#runtime/process-info.js';
import type { PostgresBinaries } from './binaries.js';
import { giveTo, type RunAs } from './run-as.js';
import { waitFor } from '../wait.js';

/** The role and the database that everything of ours uses. */
export const ROLE = 'berth';

/**
 * Makes the data folder when there is none. It is filled beside its place and moved there, so that a kill in the middle
 * leaves no half cluster. Data of another major version are set aside: they are views, rebuilt from the log.
 * @returns what was set aside, as a sentence.
 */
export async function prepareCluster(
  binaries: PostgresBinaries,
  as: RunAs,
  folder: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const data = join(folder, 'data');
  const major = binaries.version.split('.')[0] ?? '';
  let note: string | undefined;
  if (existsSync(data)) {
    const found = existsSync(join(data, 'PG_VERSION'))
      ? readFileSync(join(data, 'PG_VERSION'), 'utf8').trim()
      : 'none';
    if (found === major) return undefined;
    const aside = `${data}-aside-${Date.now()}`;
    renameSync(data, aside);
    note = `The views' data (Postgres ${found}) do not fit Postgres ${major}: set aside as ${aside}, rebuilt from the log.`;
  }
  // What a killed start left is removed; its initdb may still be writing there for a moment.
  for (const name of readdirSync(folder).filter((name) => name.startsWith('making-'))) {
    rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 10 });
  }
  const making = join(folder, `making-${process.pid}`);
  mkdirSync(making, { mode: 0o700 });
  giveTo(as, making);
  const args = ['-D', making, '-U', ROLE, '--no-sync', '--no-locale', '-E', 'UTF8', '--auth=trust'];
  const { code, output } = await runOnce(
    as,
    binaries.initdb,
    [...args, '--no-instructions'],
    folder,
    env,
    signal,
  );
  if (code !== 0) {
    rmSync(making, { recursive: true, force: true });
    signal?.throwIfAborted();
    throw new Error(
      `The embedded Postgres could not make its data folder ${data}: ${lastLines(output)} Name another home with --home, or set DATABASE_URL to a Postgres of your own.`,
    );
  }
  renameSync(making, data);
  return note;
}

/** The folder of the socket: below the data, or in the temp folder when a socket's path (at most 107 bytes) would not fit. */
export function socketFolder(folder: string, as: RunAs): string {
  const near = join(folder, 'run');
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  const chosen = [near, join(tmpdir(), `berth-${digest}`), join('/tmp', `berth-${digest}`)].find(
    (path) => Buffer.byteLength(path) <= 86,
  );
  if (chosen === undefined)
    throw new Error(
      `No folder is short enough for the socket of ${folder}. Name a home with a shorter path with --home.`,
    );
  mkdirSync(chosen, { recursive: true, mode: 0o700 });
  const found = lstatSync(chosen);
  const ours = [process.getuid?.(), as.owner].includes(found.uid);
  if (!found.isDirectory() || !ours || (found.mode & 0o077) !== 0) {
    throw new Error(
      `The folder ${chosen} for the Postgres socket is not ours alone (owner ${found.uid}, mode ${(found.mode & 0o777).toString(8)}). Remove it and start again.`,
    );
  }
  giveTo(as, chosen);
  return chosen;
}

/** The pid of the server that holds the data folder, when it is really there. */
export function serverPid(data: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
    if (!Number.isInteger(pid) || pid <= 1 || !isAlive(pid)) return undefined;
    // A pid may have been given to another program since: the server names its data folder on its command line.
    if (existsSync(`/proc/${pid}/cmdline`) && !readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(data)) {
      return undefined;
    }
    return pid;
  } catch {
    return undefined;
  }
}

/** Stops a server that a killed supervisor left: fast, then immediate, then by force. */
export async function stopLeftover(data: string): Promise<void> {
  const pid = serverPid(data);
  if (pid === undefined) return;
  for (const [signal, withinMs] of [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
    ['SIGKILL', 5_000],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw error;
    }
    if (await waitFor(() => !isAlive(pid), withinMs)) return;
  }
  throw new Error(
    `An earlier embedded Postgres (pid ${pid}) holds ${data} and cannot be stopped. End it and start again.`,
  );
}

function runOnce(
  as: RunAs,
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): Promise<{ code: number | null; output: string }> {
  const { file, args: all } = as.command(program, args);
  return new Promise((resolve, reject) => {
    // A session of its own: Ctrl-C in the terminal must not end it in the middle.
    const child = spawn(file, all, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // initdb starts servers of its own: all of its session must go.
    const abort = () => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    };
    signal?.addEventListener('abort', abort, { once: true });
    let output = '';
    const keep = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-8_000));
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', reject);
    child.once('close', (code) => {
      signal?.removeEventListener('abort', abort);
      resolve({ code, output });
    });
  });
}

export const lastLines = (text: string, count = 4): string =>
  text.trim().split('\n').slice(-count).join(' / ') || 'it said nothing';
