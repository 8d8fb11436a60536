import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { packageRoot } from '#runtime/process-info.js';

/** Opens the log of a stack that runs: the connection string lies in its home. */
export function openLogOf(home: string): EventLog {
  const url = readFileSync(join(home, 'event-node', 'connection'), 'utf8').trim();
  return openEventLog({ url, by: 'test', now: () => Date.now() });
}

/**
 * Starts the event node of a stopped stack once more and runs `use` on its log: for what must hold of a log at rest.
 */
export async function withLogAtRest<T>(home: string, use: (log: EventLog) => Promise<T>): Promise<T> {
  const node: ChildProcess = fork(
    join(packageRoot(), 'dist/apps/event-node/src/main.js'),
    ['--port', '0', '--data', join(home, 'event-node')],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] },
  );
  const [message] = (await once(node, 'message')) as [{ berth: string; message?: string }];
  if (message.berth !== 'ready') throw new Error(`the event node did not start: ${message.message ?? ''}`);
  const log = openLogOf(home);
  try {
    return await use(log);
  } finally {
    await log.close();
    const gone = once(node, 'exit');
    node.kill('SIGTERM');
    await gone;
  }
}

/** Every event of Berth in the order of the log. */
export function readWholeLog(log: EventLog): Promise<readonly Recorded<BerthEvent>[]> {
  return new Promise((resolve, reject) => {
    const events: Recorded<BerthEvent>[] = [];
    const subscription = log.subscribeAll([], {
      onEvent: (recorded) => {
        events.push(recorded);
      },
      onCaughtUp: () => {
        subscription.stop().then(() => resolve(events), reject);
      },
    });
    subscription.ended.catch(reject);
  });
}
