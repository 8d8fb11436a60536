import { fork, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../../../dist/apps/event-node/src/main.js', import.meta.url));

const children = new Set<ChildProcess>();
/** What a failed test has left running. */
export function killLeftovers(): void {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
}
export function track(child: ChildProcess): ChildProcess {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

export interface NodeProcess {
  readonly child: ChildProcess;
  readonly connectionString: string;
  readonly said: string[];
  /** SIGKILL: nothing in the process gets a word. */
  kill(): Promise<void>;
  terminate(): Promise<number | null>;
}

/** The real process, from the build, under a supervisor's channel. */
export async function startNodeProcess(
  dataDir: string,
  args: readonly string[] = ['--insecure'],
): Promise<NodeProcess> {
  if (!existsSync(main)) throw new Error(`${main} is not built: run npx tsc -b apps/event-node`);
  const child = fork(main, ['--port', '0', '--data', dataDir, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  track(child);
  const said: string[] = [];
  child.stderr?.on('data', (chunk) => said.push(String(chunk)));
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  await new Promise<void>((resolve, reject) => {
    child.once('message', (message: { berth: string; message?: string }) => {
      if (message.berth === 'ready') resolve();
      else reject(new Error(message.message));
    });
    child.once('exit', (code) => reject(new Error(`the node ended with ${code}: ${said.join('')}`)));
  });
  return {
    child,
    connectionString: readFileSync(join(dataDir, 'connection'), 'utf8').trim(),
    said,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    terminate: async () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}
