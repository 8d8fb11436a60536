import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { ServerGrpc } from '@nestjs/microservices';
import { packageRoot } from '#runtime/process-info.js';

const KEEP_ALIVE = {
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5000,
  'grpc.keepalive_permit_without_calls': 1,
};

/**
 * Nest's gRPC server on a port that the system gives: Nest's own does not tell which port it got, and a port that is
 * looked for first can be taken by another process before it is bound.
 */
export class AgentLineServer extends ServerGrpc {
  #port: number | undefined;

  constructor() {
    super({
      package: 'berth.agents',
      protoPath: join(packageRoot(), 'schema', 'agent-line.proto'),
      loader: { keepCase: false, longs: Number, defaults: false, oneofs: true },
      channelOptions: KEEP_ALIVE,
    });
  }

  /** Where agents dial. @throws before the server listens. */
  get address(): string {
    if (this.#port === undefined) throw new Error('The agents’ line does not listen yet.');
    return `127.0.0.1:${this.#port}`;
  }

  override async createClient(): Promise<Server> {
    const server = new Server(KEEP_ALIVE);
    this.#port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
        if (error) reject(error);
        else resolve(port);
      });
    });
    return server;
  }
}
