import { type HomeLock, markOf, type ProcessMark } from './home-lock.js';
import { endEngines } from './engines-left.js';
import type { Reporter } from './reporter.js';
import { appService, eventNodeService, postgresService, type ServiceContext } from './services.js';
import type { Details, Service } from './service.js';
import { Supervised } from './supervised.js';

export interface StackOptions {
  readonly context: ServiceContext;
  readonly lock: HomeLock;
  readonly reporter: Reporter;
  /** A server of one's own; undefined: the embedded one. */
  readonly eventstoreUrl: string | undefined;
  readonly databaseUrl: string | undefined;
}

/** What was started and why it could not be; everything that was started is stopped again by whoever catches it. */
export class StartFailed extends Error {}

const HURRY_MS = 2_000;

/** Everything that `berth up` runs, in the order of its start; it is stopped the other way round. */
export class Stack {
  readonly #options: StackOptions;
  readonly #running: Supervised[] = [];
  #hurry = false;
  /** Once a start has failed only its reason is worth a line. */
  #quiet = false;
  #stopping: Promise<void> | undefined;

  constructor(options: StackOptions) {
    this.#options = options;
  }

  /** @returns what the api said when it was ready. @throws StartFailed with the sentence of the one that failed. */
  async start(): Promise<Details> {
    const { context, reporter, eventstoreUrl, databaseUrl } = this.#options;
    const log = eventNodeService(context);
    const views = postgresService(context, (line) => reporter.line(line));
    const servers = this.#all([
      ...(eventstoreUrl === undefined ? [log] : []),
      ...(databaseUrl === undefined ? [views] : []),
    ]);
    const urlsFor = async (role: string) => {
      await servers;
      return {
        EVENTSTORE_URL: eventstoreUrl ?? log.connection(role),
        DATABASE_URL: databaseUrl ?? views.url(),
      };
    };
    // All begin while the servers start: they load their code, and are told the addresses once those are there.
    const apps = this.#all([
      // Answers that are being written are finished.
      appService(context, { name: 'api', title: 'api', stopWithinMs: 15_000 }, urlsFor('api')),
      appService(
        context,
        { name: 'projector', title: 'projector', stopWithinMs: 10_000 },
        urlsFor('projector'),
      ),
      // It ends its engines, each with a time of its own.
      appService(context, { name: 'agent', title: 'worker agent', stopWithinMs: 30_000 }, urlsFor('agent')),
    ]);
    const [, [details]] = await Promise.all([servers, apps]);
    if (this.#stopping !== undefined) throw new StartFailed('Berth was asked to stop.');
    return details ?? {};
  }

  /** In order: api, agent, projector, Postgres, event log. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopInOrder();
    return this.#stopping;
  }

  /** Somebody does not want to wait: the first time all stop at once and soon, the second time by force. */
  hurry(): void {
    if (this.#hurry) for (const one of this.#running) one.kill();
    this.#hurry = true;
    for (const one of this.#running) void one.stop(HURRY_MS);
  }

  async #stopInOrder(): Promise<void> {
    const order = ['api', 'agent', 'projector', 'postgres', 'event-node'];
    const byOrder = [...this.#running].sort(
      (a, b) => order.indexOf(a.service.name) - order.indexOf(b.service.name),
    );
    for (const one of byOrder) {
      const step = this.#options.reporter.step(one.service.title);
      await one.stop(this.#hurry ? HURRY_MS : one.service.stopWithinMs);
      if (!this.#quiet) step.done('stopped');
    }
    // An agent that was ended by force left its engines; the next one would adopt them, and nobody asked for one.
    endEngines(this.#options.context.home);
  }

  /** Starts them together; when one fails, says which, without waiting for the others. */
  async #all(services: readonly Service[]): Promise<readonly Details[]> {
    return Promise.all(
      services.map(async (service) => {
        const one = new Supervised(service, {
          say: (line) => this.#options.reporter.line(line),
          changed: () => this.#recordChildren(),
        });
        this.#running.push(one);
        const step = this.#options.reporter.step(service.title);
        try {
          const details = await one.start();
          if (!this.#quiet) step.done('ready', describe(service, details));
          return details;
        } catch (error) {
          this.#quiet = true;
          throw new StartFailed(`The ${service.title} did not start: ${(error as Error).message}`, {
            cause: error,
          });
        }
      }),
    );
  }

  #recordChildren(): void {
    const children: Record<string, ProcessMark> = {};
    for (const one of this.#running) if (one.pid !== undefined) children[one.service.name] = markOf(one.pid);
    this.#options.lock.update({ children });
  }
}

function describe(service: Service, details: Details): string {
  if (service.name === 'postgres') return `embedded, ${String(details['version'] ?? '')}`;
  if (service.name === 'event-node') return `embedded, port ${String(details['port'] ?? '')}`;
  return '';
}
