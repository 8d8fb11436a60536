import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';

export interface ReplayProcess {
  readonly pid: number;
  /** Settles when it has ended; the code is null when it was killed. */
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
  /** What it said so far. */
  said(): string;
  kill9(): void;
}

/** `berth replay` as the command line runs it: a process of its own, from `dist` (npx tsc -b apps/projector). */
export function startReplay(
  urls: { readonly eventstoreUrl: string; readonly databaseUrl: string; readonly home: string },
  ...args: string[]
): ReplayProcess {
  const child = fork(join(packageRoot(), 'dist/apps/projector/src/replay/main.js'), args, {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      BERTH_HOME: urls.home,
      EVENTSTORE_URL: urls.eventstoreUrl,
      DATABASE_URL: urls.databaseUrl,
    },
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  return {
    pid: child.pid ?? -1,
    ended: once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr })),
    said: () => stdout,
    kill9: () => void child.kill('SIGKILL'),
  };
}
