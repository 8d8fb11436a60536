import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What an engine may see of our environment: where programs and libraries are, locale, and accelerators. */
const ENVIRONMENT =
  /^(PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|CUDA_\w+|NVIDIA_\w+|HIP_\w+|ROCR_\w+|HSA_\w+|VK_\w+|OMP_\w+)$/;

export function engineEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  more: Readonly<Record<string, string>>,
): Record<string, string> {
  const allowed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && ENVIRONMENT.test(entry[0]),
  );
  // Without it an abort starts a debugger to print a backtrace.
  return { ...Object.fromEntries(allowed), GGML_NO_BACKTRACE: '1', ...more };
}

export interface SpawnOptions {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly cwd: string;
  /** CPU numbers to bind to. */
  readonly cores?: readonly number[];
}

/**
 * Starts an engine in a process group of its own, with its output in a file: it outlives its agent, and no pipe of the
 * agent can fill up under it.
 * @throws Error when the command cannot be started.
 */
export async function spawnEngine(options: SpawnOptions): Promise<ChildProcess & { readonly pid: number }> {
  const [command, args] = bound(options);
  const log = openSync(options.logFile, 'w', 0o600);
  // Appending, so that a log that is cut in place does not become a file with a hole.
  const append = openSync(options.logFile, 'a', 0o600);
  closeSync(log);
  try {
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', append, append],
      env: options.env,
      cwd: options.cwd,
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    if (child.pid === undefined) throw new Error(`${command} was started but has no pid.`);
    return Object.assign(child, { pid: child.pid });
  } finally {
    closeSync(append);
  }
}

/** `taskset` sets the affinity and becomes the engine: the pid is the engine's. */
function bound(options: SpawnOptions): [string, readonly string[]] {
  const { command, arguments: args, cores } = options;
  const taskset = cores && cores.length > 0 ? findProgram('taskset', process.env['PATH']) : undefined;
  return taskset === undefined || !cores
    ? [command, args]
    : [taskset, ['-c', cores.join(','), command, ...args]];
}

export function findProgram(name: string, path: string | undefined): string | undefined {
  for (const folder of (path ?? '').split(delimiter)) {
    if (folder !== '' && isExecutable(join(folder, name))) return join(folder, name);
  }
  return undefined;
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
