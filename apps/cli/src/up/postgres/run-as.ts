import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `self`: as the user who started Berth. The others are ways for root, whom Postgres refuses to serve. */
export type RunAsMode = 'self' | 'user-namespace' | 'nobody';

/** How a program of Postgres is started, given what it is and its arguments. */
export interface RunAs {
  readonly mode: RunAsMode;
  /** Who must own the data; undefined: whoever runs Berth. */
  readonly owner?: number;
  command(program: string, args: readonly string[]): { readonly file: string; readonly args: string[] };
}

const NOBODY = 65534;
const id = String(NOBODY);

/**
 * - `user-namespace`: a namespace of its own in which root is uid 1000; files stay root's, and a closed home folder is
 *   no obstacle. Containers often forbid it.
 * - `nobody`: uid 65534 that keeps the right to pass closed folders, because our home is closed to others, as root's is.
 */
const MODES: Readonly<Record<RunAsMode, RunAs>> = {
  self: {
    mode: 'self',
    command: (file, args) => ({ file, args: [...args] }),
  },
  'user-namespace': {
    mode: 'user-namespace',
    command: (program, args) => ({
      file: 'unshare',
      args: ['--user', '--map-user=1000', '--map-group=1000', program, ...args],
    }),
  },
  nobody: {
    mode: 'nobody',
    owner: NOBODY,
    command: (program, args) => ({
      file: 'setpriv',
      args: [
        ...['--reuid', id, '--regid', id, '--clear-groups'],
        ...['--inh-caps', '+dac_override', '--ambient-caps', '+dac_override', program, ...args],
      ],
    }),
  },
};

/**
 * Chooses how to run Postgres and remembers it beside the data, because the owner of the data depends on it.
 * @throws Error that names every way tried and why it failed.
 */
export function chooseRunAs(folder: string, program: string, env: NodeJS.ProcessEnv): RunAs {
  const tries: readonly RunAsMode[] = process.getuid?.() === 0 ? ['user-namespace', 'nobody'] : ['self'];
  const memory = join(folder, 'run-as');
  const remembered = existsSync(memory) ? readFileSync(memory, 'utf8').trim() : undefined;
  const known = tries.find((mode) => mode === remembered);
  if (known !== undefined) return MODES[known];
  const refusals: string[] = [];
  for (const mode of tries) {
    const refusal = probe(MODES[mode], folder, program, env);
    if (refusal === undefined) {
      writeFileSync(memory, mode, { mode: 0o600 });
      return MODES[mode];
    }
    refusals.push(`${mode}: ${refusal}`);
  }
  throw new Error(
    (tries[0] === 'self'
      ? `The embedded Postgres does not run here (${refusals.join('; ')}).`
      : `Postgres refuses to run as root, and no other way works here (${refusals.join('; ')}). Start Berth as a normal user.`) +
      ' Or set DATABASE_URL to a Postgres of your own.',
  );
}

/** Runs the program once that way, with access to the folder; returns why it did not work. */
function probe(as: RunAs, folder: string, program: string, env: NodeJS.ProcessEnv): string | undefined {
  const reach = as.command('/bin/sh', ['-c', 'cd "$1" && exec "$2" --version', 'sh', folder, program]);
  giveTo(as, folder);
  const result = spawnSync(reach.file, reach.args, {
    env,
    cwd: '/',
    encoding: 'utf8',
    timeout: 20_000,
  });
  if (result.status === 0 && /PostgreSQL/.test(result.stdout)) {
    return undefined;
  }
  if (process.getuid?.() === 0) chownSync(folder, 0, 0);
  const said = result.error?.message ?? result.stderr.trim().split('\n').at(-1) ?? '';
  return said === '' ? `exit code ${String(result.status)}` : said;
}

export function giveTo(as: RunAs, path: string): void {
  if (as.owner !== undefined) chownSync(path, as.owner, as.owner);
}
