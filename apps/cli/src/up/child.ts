import { fork } from 'node:child_process';
import { closeSync } from 'node:fs';
import { HELD, type FailedMessage, type GoMessage, type ReadyMessage } from '#runtime/lifecycle.js';
import { type LogFiles, sizeOf, tailFrom } from './log-files.js';
import type { Details, Launched } from './service.js';
import { waitFor } from './wait.js';

export interface ChildOptions {
  readonly name: string;
  /** The script that is forked, and its arguments. */
  readonly script: string;
  readonly args: readonly string[];
  /** Flags for Node itself. */
  readonly nodeFlags?: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly logs: LogFiles;
  /** Counted from when it may start. */
  readonly readyWithinMs: number;
  /** What it needs beyond `env`, once that is known: it is started held, and loads its code meanwhile. */
  readonly later?: Promise<Readonly<Record<string, string>>>;
}

/** A Node process with a line to us: it says when it is ready, and stops by itself when we are gone. */
export function launchChild(options: ChildOptions): Launched {
  const { name, logs } = options;
  const from = sizeOf(logs.prepare(name));
  const log = logs.open(name);
  const child = fork(options.script, [...options.args], {
    env: {
      ...options.env,
      RESOLVED_BY_SUPERVISOR: '1',
      ...(options.later === undefined ? {} : { [HELD]: '1' }),
    },
    execArgv: [...(options.nodeFlags ?? [])],
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  let over = false;
  let failure: string | undefined;
  const tail = () => {
    const lines = tailFrom(logs.path(name), from);
    return `${lines.length > 0 ? `\n${lines.map((line) => `  | ${line}`).join('\n')}` : ''}\n  its log: ${logs.path(name)}`;
  };
  const ended = new Promise<string>((resolve) => {
    const end = (why: string) => {
      over = true;
      resolve(why);
    };
    child.once('exit', (code, signal) => end(signal ?? `exit code ${String(code)}`));
    child.once('error', (error) => {
      // Also raised for a message that could not be sent; only a child that never was has no pid.
      if (child.pid === undefined) end(error.message);
    });
  });
  const ready = new Promise<Details>((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const startClock = () => {
      timer = setTimeout(() => {
        reject(new Error(`it was not ready within ${Math.round(options.readyWithinMs / 1000)} s${tail()}`));
      }, options.readyWithinMs);
    };
    if (options.later === undefined) startClock();
    else {
      options.later.then((env) => {
        if (over) return;
        startClock();
        child.send({ berth: 'go', env } satisfies GoMessage);
      }, reject);
    }
    child.on('message', (message: ReadyMessage | FailedMessage | null) => {
      if (message?.berth === 'ready') {
        clearTimeout(timer);
        resolve(message.details);
      } else if (message?.berth === 'failed') {
        clearTimeout(timer);
        failure = message.message;
        reject(new Error(`${failure}\n  its log: ${logs.path(name)}`));
      }
    });
    void ended.then((why) => {
      clearTimeout(timer);
      reject(new Error(`it ended with ${why} before it was ready${tail()}`));
    });
  });
  const stop = async (withinMs: number): Promise<void> => {
    if (over) return;
    child.kill('SIGTERM');
    if (await waitFor(() => over, withinMs)) return;
    child.kill('SIGKILL');
    await ended;
  };
  return {
    ready,
    ended: ended.then((why) => failure ?? why),
    ...(child.pid === undefined ? {} : { pid: child.pid }),
    stop,
    kill: () => void child.kill('SIGKILL'),
  };
}
