import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';

/** The projector as `berth up` runs it: a process of its own, from `dist` (npx tsc -b apps/projector). */
export interface ProjectorProcess {
  readonly pid: number;
  /** Fulfilled with what it told its supervisor. */
  readonly ready: Promise<{ readonly views?: string }>;
  readonly output: () => string;
  /** SIGKILL; settles when it is gone. */
  kill9(): Promise<void>;
  /** SIGTERM; settles with its exit code. */
  stop(): Promise<number | null>;
}

export function startProjector(urls: {
  readonly eventstoreUrl: string;
  readonly databaseUrl: string;
  readonly home: string;
}): ProjectorProcess {
  const child: ChildProcess = fork(join(packageRoot(), 'dist/apps/projector/src/main.js'), [], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      BERTH_HOME: urls.home,
      BERTH_MODELS: join(urls.home, 'models'),
      EVENTSTORE_URL: urls.eventstoreUrl,
      DATABASE_URL: urls.databaseUrl,
    },
  });
  let said = '';
  const keep = (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-20_000));
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const gone = once(child, 'exit');
  const ready = new Promise<{ views?: string }>((resolve, reject) => {
    child.on('message', (message: { berth?: string; message?: string; details?: { views?: string } }) => {
      if (message.berth === 'ready') resolve(message.details ?? {});
      if (message.berth === 'failed') reject(new Error(message.message));
    });
    void gone.then(() => reject(new Error(`The projector ended before it was ready:\n${said}`)));
  });
  ready.catch(() => undefined);
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await gone;
    return child.exitCode;
  };
  return {
    pid: child.pid ?? -1,
    ready,
    output: () => said,
    kill9: async () => {
      await end('SIGKILL');
    },
    stop: () => end('SIGTERM'),
  };
}
