import { join } from 'node:path';
import {
  credentials,
  loadPackageDefinition,
  Metadata,
  type ClientDuplexStream,
  type GrpcObject,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { packageRoot } from '#runtime/process-info.js';
import type { Logger } from '#runtime/logger.js';
import type { FromAgent, FromApi } from './messages.js';

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 5000;
const HEARTBEAT_MS = 5000;
/** Nothing heard for this long: the connection is taken as dead and dialled again. */
const SILENCE_MS = 15_000;

type Stream = ClientDuplexStream<FromAgent, FromApi>;
interface AgentLineClient {
  Session(metadata: Metadata): Stream;
  close(): void;
}
type AgentLineConstructor = new (
  address: string,
  creds: ReturnType<typeof credentials.createInsecure>,
  options: Record<string, number>,
) => AgentLineClient;

let constructor: AgentLineConstructor | undefined;

function agentLine(): AgentLineConstructor {
  if (constructor) return constructor;
  const definition = loadSync(join(packageRoot(), 'schema', 'agent-line.proto'), {
    keepCase: false,
    longs: Number,
    defaults: false,
    oneofs: true,
  });
  const loaded = loadPackageDefinition(definition) as unknown as {
    berth: { agents: { AgentLine: AgentLineConstructor } & GrpcObject };
  };
  constructor = loaded.berth.agents.AgentLine;
  return constructor;
}

export interface SessionHandlers {
  hello(): NonNullable<FromAgent['hello']>;
  onMessage(message: FromApi): void;
  onConnected(connected: boolean): void;
}

/** One line to one api: dials, says hello, keeps alive, and dials again until closed. */
export class LineSession {
  #client: AgentLineClient | undefined;
  #stream: Stream | undefined;
  #retryMs = FIRST_RETRY_MS;
  #closed = false;
  #connected = false;
  #heardAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #beat: NodeJS.Timeout | undefined;

  constructor(
    readonly address: string,
    private readonly token: string,
    private readonly handlers: SessionHandlers,
    private readonly log: Logger,
  ) {
    this.#dial();
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Dropped when there is no connection: what is sent here is no fact. */
  send(message: FromAgent): void {
    if (this.#connected) this.#stream?.write(message);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#hangUp();
  }

  #dial(): void {
    const Line = agentLine();
    this.#client = new Line(this.address, credentials.createInsecure(), {
      'grpc.keepalive_time_ms': 10_000,
      'grpc.keepalive_timeout_ms': 5000,
      'grpc.keepalive_permit_without_calls': 0,
      'grpc.enable_retries': 0,
    });
    const metadata = new Metadata();
    metadata.set('berth-token', this.token);
    const stream = this.#client.Session(metadata);
    this.#stream = stream;
    stream.on('data', (message: FromApi) => {
      this.#heardAt = performance.now();
      if (message.welcome && !this.#connected) {
        this.#connected = true;
        this.#retryMs = FIRST_RETRY_MS;
        this.handlers.onConnected(true);
      }
      this.handlers.onMessage(message);
    });
    stream.on('error', (error: Error) => this.#lost(stream, error.message));
    stream.on('end', () => this.#lost(stream, 'the api ended the session'));
    stream.write({ hello: this.handlers.hello() });
    this.#heardAt = performance.now();
    this.#beat = setInterval(() => {
      if (performance.now() - this.#heardAt > SILENCE_MS)
        this.#lost(stream, `nothing heard for ${SILENCE_MS / 1000} s`);
      else if (this.#connected) stream.write({ heartbeat: { at: new Date().toISOString() } });
    }, HEARTBEAT_MS);
  }

  #lost(stream: Stream, why: string): void {
    if (stream !== this.#stream) return;
    const was = this.#connected;
    this.#hangUp();
    if (this.#closed) return;
    if (was) this.log.warn({ address: this.address, why }, 'the line to an api broke; dialling again');
    const delay = this.#retryMs * (0.5 + Math.random());
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
    this.#timer = setTimeout(() => this.#dial(), delay);
    this.#timer.unref();
  }

  #hangUp(): void {
    clearInterval(this.#beat);
    const stream = this.#stream;
    this.#stream = undefined;
    // A cancelled call still emits its error; nobody needs to hear it.
    stream?.removeAllListeners();
    stream?.on('error', () => undefined);
    stream?.cancel();
    this.#client?.close();
    this.#client = undefined;
    if (this.#connected) {
      this.#connected = false;
      this.handlers.onConnected(false);
    }
  }
}
