import { hostname } from 'node:os';
import { join } from 'node:path';
import { loadPackageDefinition, Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { FleetEvent } from '#domain/events/index.js';
import { apiId } from '#domain/ids.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import { bootId, packageRoot } from '#runtime/process-info.js';
import type { FromAgent, FromApi } from '../../apps/worker-agent/src/line/messages.js';
import { waitFor } from './wait.js';

type Stream = ServerDuplexStream<FromAgent, FromApi>;

/** An api as an agent sees one: it stands in the log, holds a line, and lets go of a resident when the test says so. */
export class ScriptedApi {
  readonly id = apiId(newId());
  readonly #server = new Server();
  #stream: Stream | undefined;
  readonly #answered = new Set<string>();

  constructor(private readonly log: EventLog) {}

  async start(): Promise<this> {
    const loaded = loadPackageDefinition(
      loadSync(join(packageRoot(), 'schema', 'agent-line.proto'), {
        keepCase: false,
        longs: Number,
        defaults: false,
        oneofs: true,
      }),
    ) as unknown as { berth: { agents: { AgentLine: { service: Parameters<Server['addService']>[0] } } } };
    this.#server.addService(loaded.berth.agents.AgentLine.service, {
      Session: (stream: Stream) => {
        stream.on('error', () => undefined);
        stream.on('data', (message: FromAgent) => {
          if (message.hello) {
            this.#stream = stream;
            stream.write({ welcome: { apiId: this.id } });
          } else if (message.projected) this.#answered.add(message.projected.requestId);
        });
        stream.on('end', () => stream.end());
      },
    });
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    await this.#tell({
      type: 'ApiStarted',
      data: {
        apiId: this.id,
        host: hostname(),
        bootId: bootId(),
        pid: process.pid,
        agentLine: `127.0.0.1:${port}`,
        version: 'test',
        startedAt: new Date().toISOString(),
      },
    });
    return this.connected();
  }

  /** Waits until the agent, or the one after it, has dialled. */
  async connected(): Promise<this> {
    await waitFor('the agent dials the api', 20_000, () => this.#stream?.writable);
    return this;
  }

  /** The agent that was there is gone: the next one's line is another. */
  forgetAgent(): void {
    this.#stream = undefined;
  }

  /** Says that it has let go, and waits until the agent has heard it: messages of a line are read in order. */
  async letGo(resident: string, sinceRevision: number): Promise<void> {
    const requestId = newId();
    this.#stream?.write({ drained: { residentId: resident, sinceRevision } });
    this.#stream?.write({
      project: { requestId, modelKey: 'none/none', artifact: 'F16', contractJson: '{}' },
    });
    await waitFor('the agent has heard it', 10_000, () => this.#answered.has(requestId));
  }

  async stop(): Promise<void> {
    await this.#tell({ type: 'ApiStopped', data: { apiId: this.id } });
    this.#server.forceShutdown();
  }

  async #tell(event: FleetEvent): Promise<void> {
    const id = newId();
    const outcome = await this.log.append<FleetEvent>(
      streams.apis,
      [{ id, event, cause: { correlationId: id, causationId: id } }],
      'any',
    );
    if (!outcome.ok) throw new Error(`The log did not take ${event.type}: ${outcome.error.kind}`);
  }
}
