import 'reflect-metadata';
import type { RequestListener, Server } from 'node:http';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { DynamicModule, NestApplicationOptions } from '@nestjs/common';
import type { ProcessConfig } from '#runtime/config.js';
import type { Logger } from '#runtime/logger.js';
import { openViews, type ViewsDb } from '#schema/connect.js';
import type { EventLog } from '#events/event-log.js';
import type { Access } from './access/access.js';
import { AdminModule } from './admin/admin.module.js';
import { FRAMEWORK_PROBLEMS } from './admin/problem/problem.filter.js';
import { ApiModule } from './api.module.js';
import type { Admission } from './admission/admission.js';
import { AgentLineServer } from './agents/line-server.js';
import type { Decider } from './admission/decider.js';
import type { LiveHub } from './live/socket/live-hub.js';
import type { OperatorBook } from './operator/operator-book.js';
import type { Fleet } from './fleet/fleet.js';
import type { Replays } from './replay/replays.js';
import type { WhatIfs } from './what-if/what-ifs.js';
import type { AgentSessions } from './agents/sessions.js';

export interface NestParts {
  readonly access: Access;
  readonly fleet: Fleet;
  readonly log: EventLog;
  readonly admission: Admission;
  readonly sessions: AgentSessions;
  readonly operator: OperatorBook;
  readonly hub: LiveHub;
  readonly decider: Pick<Decider, 'inputFor'>;
  readonly whatIfs: WhatIfs;
  readonly replays: Replays;
  readonly lineToken: string;
  readonly config: ProcessConfig;
  readonly logger: Logger;
}

export interface StartedNest {
  /** Answers what is not the data plane's. */
  readonly handler: RequestListener;
  /** Where agents dial. */
  readonly agentLine: string;
  close(): Promise<void>;
}

/** Nest over Fastify behind the front door's server, which listens already, and the agents' line on a port of its own. */
export async function startNest(parts: NestParts, server: Server): Promise<StartedNest> {
  let handler: RequestListener | undefined;
  const adapter = new FastifyAdapter({
    serverFactory: (given: RequestListener) => {
      handler = given;
      return server;
    },
    // The server is ended by who made it, after its calls.
    forceCloseConnections: false,
    ...FRAMEWORK_PROBLEMS,
  });
  const { access, admission, sessions, lineToken, logger } = parts;
  const views =
    parts.config.databaseUrl === undefined ? undefined : viewsOf(parts.config.databaseUrl, logger);
  const imports: DynamicModule[] = [
    AdminModule.with({
      views,
      access,
      log: logger,
      fleet: parts.fleet,
      events: parts.log,
      hub: parts.hub,
      inputFor: (worker, model) => parts.decider.inputFor(worker, model),
      whatIfs: parts.whatIfs,
      replays: parts.replays,
      operator: {
        book: parts.operator,
        isConnected: (worker) => sessions.isConnected(worker),
        waitingFor: (model) => admission.waitingFor(model),
      },
    }),
  ];
  const app = await NestFactory.create<NestFastifyApplication>(
    ApiModule.with({ admission, sessions, lineToken, imports }),
    adapter,
    options(logger),
  );
  const line = new AgentLineServer();
  app.connectMicroservice({ strategy: line });
  await app.startAllMicroservices();
  takeEmptyBodies(adapter);
  await app.init();
  await adapter.getInstance().ready();
  if (!handler) throw new Error('Fastify did not ask for its server.');
  return {
    handler,
    agentLine: line.address,
    close: async () => {
      await app.close();
      await views?.destroy();
    },
  };
}

/** Clients that name JSON in the head of every request send none of it to a route that needs no body. */
function takeEmptyBodies(adapter: FastifyAdapter): void {
  const parse = adapter.getInstance().getDefaultJsonParser('error', 'error');
  adapter.useBodyParser('application/json', false, {}, (request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined);
    else void parse(request, body.toString('utf8'), done);
  });
}

/** Nothing is dialled before the first question: the front door does not depend on Postgres. */
const viewsOf = (databaseUrl: string, logger: Logger): ViewsDb =>
  openViews(databaseUrl, {
    applicationName: 'berth-api',
    maxConnections: 4,
    statementTimeoutMs: 30_000,
    onIdleError: (error) => logger.warn({ err: error }, 'a connection to Postgres broke'),
  });

// Nest declares its options as a class, and takes a plain object.
// eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
const options = (logger: Logger): NestApplicationOptions => ({
  logger: nestLogger(logger),
  abortOnError: false,
});

/** Nest's own lines are of use to who works on it; what goes wrong is of use to all. */
const nestLogger = (logger: Logger) => ({
  log: (message: unknown) => logger.debug(String(message)),
  debug: (message: unknown) => logger.trace(String(message)),
  verbose: (message: unknown) => logger.trace(String(message)),
  warn: (message: unknown) => logger.warn(String(message)),
  error: (message: unknown, ...rest: unknown[]) =>
    logger.error({ details: rest.map(String) }, String(message)),
  fatal: (message: unknown) => logger.fatal(String(message)),
});
