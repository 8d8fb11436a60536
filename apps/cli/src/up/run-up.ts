import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';
import { settingsEnvironment, type ResolvedSettings } from '../settings/resolve.js';
import { greeting } from './greeting.js';
import { HomeIsTaken, type HomeLock, isThere, lockHome, type LockContent } from './home-lock.js';
import { followLogs } from './follow-logs.js';
import { LogFiles } from './log-files.js';
import { describePortFault, portFault } from './port-check.js';
import { createReporter } from './reporter.js';
import { Stack, StartFailed } from './stack.js';
import { waitFor } from './wait.js';

export interface UpOptions {
  readonly settings: ResolvedSettings;
  readonly verbose: boolean;
  /** `bin/berth`; tests name a script of their own. */
  readonly script?: string;
  readonly readyWithinMs?: number;
}

/** Starts everything, and returns when all of it has stopped. @returns the exit code */
export async function runUp(options: UpOptions): Promise<number> {
  // A terminal that went away must not end us before the others have stopped.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const began = performance.now();
  const { values } = options.settings;
  const { home } = values;
  const host = values.host ?? '127.0.0.1';
  const port = Number(values.port ?? 8080);
  prepareHome(home);
  let lock: HomeLock;
  try {
    lock = lockHome(home);
  } catch (error) {
    if (!(error instanceof HomeIsTaken)) throw error;
    console.error(`berth: ${error.message}`);
    return 1;
  }
  const logs = new LogFiles(join(home, 'logs'));
  try {
    if (lock.abandoned !== undefined) await awaitChildren(lock.abandoned);
    const fault = await portFault(host, port);
    if (fault !== undefined) {
      console.error(`berth: ${await describePortFault(host, port, fault)}`);
      return 1;
    }
    const reporter = createReporter((line) => console.log(line));
    const env = { ...process.env, ...settingsEnvironment(options.settings) };
    const stack = new Stack({
      context: {
        home,
        script: options.script ?? join(packageRoot(), 'bin', 'berth'),
        env,
        logs,
        readyWithinMs: options.readyWithinMs ?? 180_000,
      },
      lock,
      reporter,
      eventstoreUrl: values['eventstore-url'],
      databaseUrl: values['database-url'],
    });
    console.log(`Berth starts on ${home}`);
    const unfollow = options.verbose ? followLogs(logs) : () => undefined;
    const asked = stopRequests(
      () => {
        console.log('Stopping (Ctrl-C again hurries)');
        void stack.stop();
      },
      () => stack.hurry(),
    );
    try {
      const details = await Promise.race([stack.start(), asked.first.then(() => undefined)]);
      if (details !== undefined) {
        const shown = ['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host;
        const address = `http://${shown.includes(':') ? `[${shown}]` : shown}:${String(details['port'] ?? port)}`;
        lock.update({ address });
        console.log(await greeting(address, (performance.now() - began) / 1000, asked.signal));
        await asked.first;
      }
      await stack.stop();
      console.log('Berth has stopped.');
      return 0;
    } catch (error) {
      if (!(error instanceof StartFailed)) throw error;
      await stack.stop();
      // What failed because it was asked to stop is no failure.
      if (!asked.signal.aborted) console.error(`berth: ${error.message}`);
      return asked.signal.aborted ? 0 : 1;
    } finally {
      await stack.stop();
      asked.close();
      unfollow();
    }
  } finally {
    logs.close();
    lock.release();
  }
}

function prepareHome(home: string): void {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    chmodSync(home, 0o700);
  } catch (error) {
    throw new Error(
      `The home folder ${home} cannot be used (${(error as NodeJS.ErrnoException).code ?? String(error)}). Name another one with --home.`,
      { cause: error },
    );
  }
}

/** The children of a killed supervisor stop by themselves; those that hang are ended, so that they hold no port or file. */
async function awaitChildren(abandoned: LockContent): Promise<void> {
  const left = () => Object.values(abandoned.children).filter(isThere);
  for (const [signal, withinMs] of [
    [undefined, 10_000],
    ['SIGTERM', 5_000],
    ['SIGKILL', 5_000],
  ] as const) {
    if (signal !== undefined) for (const { pid } of left()) process.kill(pid, signal);
    if (await waitFor(() => left().length === 0, withinMs)) return;
  }
}

/** One Ctrl-C may come twice: from the terminal, and from a program in between that passes it on. */
const DOUBLED_WITHIN_MS = 300;

/**
 * Ctrl-C, SIGTERM, a closed terminal, and the end of the npm that started us: npm's shell dies of a SIGTERM without
 * passing it on.
 */
function stopRequests(first: () => void, again: () => void) {
  const controller = new AbortController();
  const asked = new Promise<void>((resolve) => {
    controller.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  let askedAtMs = 0;
  const ask = () => {
    if (controller.signal.aborted) {
      if (performance.now() - askedAtMs > DOUBLED_WITHIN_MS) again();
      return;
    }
    askedAtMs = performance.now();
    controller.abort();
    first();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, ask);
  const parent = process.ppid;
  const watch =
    process.env['npm_lifecycle_event'] === undefined
      ? undefined
      : setInterval(() => {
          if (process.ppid !== parent && !controller.signal.aborted) ask();
        }, 500);
  return {
    first: asked,
    signal: controller.signal,
    // The signals stay ours to the end: one that comes while we leave must not change the exit code.
    close: () => clearInterval(watch),
  };
}
