import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launchChild } from './child.js';
import type { LogFiles } from './log-files.js';
import { API_NODE_FLAGS } from './node-flags.js';
import { startPostgres } from './postgres/server.js';
import type { Details, Launched, Service } from './service.js';

export interface ServiceContext {
  readonly home: string;
  /** `bin/berth`, or what stands for it in tests. */
  readonly script: string;
  /** Settings and everything else that the processes inherit. */
  readonly env: NodeJS.ProcessEnv;
  readonly logs: LogFiles;
  readonly readyWithinMs: number;
}

export function appService(
  context: ServiceContext,
  app: Pick<Service, 'name' | 'title' | 'stopWithinMs'>,
  urls: Promise<Readonly<Record<string, string>>>,
): Service {
  // A port that was free to choose stays the same over restarts: clients know it.
  let port: Readonly<Record<string, string>> = {};
  return {
    ...app,
    launch: () => {
      const run = launchChild({
        name: app.name,
        script: context.script,
        args: [app.name],
        nodeFlags: app.name === 'api' ? API_NODE_FLAGS : [],
        env: { ...context.env, ...port },
        later: urls,
        logs: context.logs,
        readyWithinMs: context.readyWithinMs,
      });
      if (app.name === 'api') {
        void run.ready.then(
          (details) => (port = { BERTH_PORT: String(details['port']) }),
          () => undefined,
        );
      }
      return run;
    },
  };
}

/** The embedded event log; its port stays the same over restarts, because the others know it by its address. */
export function eventNodeService(context: ServiceContext): Service & { connection(role: string): string } {
  const data = join(context.home, 'event-node');
  let port = 0;
  return {
    name: 'event-node',
    title: 'event log',
    stopWithinMs: 10_000,
    // Each process gets the credential of its own role: what it has no business writing, it cannot write.
    connection: (role) => readFileSync(join(data, `connection-${role}`), 'utf8').trim(),
    launch: () => {
      const run = launchChild({
        name: 'event-node',
        script: context.script,
        args: ['event-node', '--port', String(port), '--data', data],
        env: context.env,
        logs: context.logs,
        readyWithinMs: context.readyWithinMs,
      });
      void run.ready.then(
        (details) => {
          port = Number(details['port'] ?? port);
        },
        () => undefined,
      );
      return run;
    },
  };
}

/** The embedded Postgres; not a Node process, so it is tied to us by a watchdog of its own. */
export function postgresService(
  context: ServiceContext,
  say: (line: string) => void,
): Service & { url(): string } {
  const folder = join(context.home, 'postgres');
  let url = '';
  return {
    name: 'postgres',
    title: 'postgres',
    stopWithinMs: 10_000,
    url: () => url,
    launch: (): Launched => {
      const given = new AbortController();
      const starting = startPostgres({
        folder,
        signal: given.signal,
        logFile: context.logs.prepare('postgres'),
        readyWithinMs: context.readyWithinMs,
      });
      const ready = starting.then((server): Details => {
        url = server.url;
        if (server.note !== undefined) say(server.note);
        return { version: server.version };
      });
      const stop = async (withinMs: number) => {
        given.abort();
        const server = await starting.catch(() => undefined);
        await server?.stop(withinMs);
      };
      return {
        ready,
        ended: starting.then(
          (server) => server.ended,
          (error: unknown) => (error instanceof Error ? error.message : String(error)),
        ),
        stop,
        kill: () => void stop(0),
      };
    },
  };
}
