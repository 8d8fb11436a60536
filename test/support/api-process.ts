import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';

export interface ApiProcess {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** An api in a process of its own, on a free port, beside others over the same home and log. */
export async function startApiProcess(home: string, eventstoreUrl: string): Promise<ApiProcess> {
  const child = fork(join(packageRoot(), 'dist/apps/api/src/main.js'), [], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
    env: {
      ...process.env,
      BERTH_HOME: home,
      BERTH_MODELS: join(home, 'models'),
      BERTH_PORT: '0',
      EVENTSTORE_URL: eventstoreUrl,
      BERTH_LOG: process.env['BERTH_LOG'] ?? 'error',
    },
  });
  const [message] = (await once(child, 'message')) as [
    { berth: string; message?: string; details?: { url: string } },
  ];
  if (!message.details) throw new Error(`an api did not start: ${message.message ?? message.berth}`);
  return {
    url: message.details.url,
    pid: child.pid ?? -1,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    },
  };
}
