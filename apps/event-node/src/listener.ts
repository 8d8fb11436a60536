import { createServer as createHttpServer, type RequestListener, type Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { StartError } from './errors.js';
import type { GrpcServer } from './grpc/server.js';

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly key: string; readonly cert: string } | undefined;
}

/** HTTP/2's connection preface begins with this. */
const PREFACE = 'PRI ';

/** One port for gRPC and for plain HTTP: told apart by ALPN under TLS, else by the first bytes. */
export class Listener {
  readonly #sockets = new Set<Socket>();
  readonly #http: HttpServer;

  private constructor(
    private readonly server: NetServer | TlsServer,
    readonly grpc: GrpcServer,
    http: RequestListener,
  ) {
    this.#http = createHttpServer(http);
  }

  static async start(options: ListenOptions, grpc: GrpcServer, http: RequestListener): Promise<Listener> {
    const server = options.tls
      ? createTlsServer({ ...options.tls, ALPNProtocols: ['h2', 'http/1.1'], minVersion: 'TLSv1.2' })
      : createServer();
    const listener = new Listener(server, grpc, http);
    if (options.tls) {
      server.on('connection', (socket: Socket) => listener.#track(socket));
      (server as TlsServer).on('secureConnection', (socket) => {
        socket.on('error', () => socket.destroy());
        if (socket.alpnProtocol === 'h2') grpc.accept(socket);
        else listener.#http.emit('connection', socket);
      });
    } else {
      server.on('connection', (socket: Socket) => {
        listener.#track(socket);
        listener.#sniff(socket);
      });
    }
    await listen(server, options);
    return listener;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Takes a renewed certificate for connections to come. */
  renew(tls: { readonly key: string; readonly cert: string }): void {
    if ('setSecureContext' in this.server) this.server.setSecureContext(tls);
  }

  /** No new connections; those that are open end when their calls have ended, at the latest after the grace. */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.grpc.drain();
    this.#http.closeIdleConnections();
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
    this.grpc.destroy();
  }

  #track(socket: Socket): void {
    socket.setNoDelay(true);
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #sniff(socket: Socket): void {
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null;
      if (!first) {
        socket.destroy();
        return;
      }
      socket.unshift(first);
      const start = first.toString('latin1', 0, PREFACE.length);
      if (PREFACE.startsWith(start)) this.grpc.accept(socket);
      else this.#http.emit('connection', socket);
    });
  }
}

async function listen(server: NetServer | TlsServer, { host, port }: ListenOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen({ host, port }, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code ?? '') {
    case 'EADDRINUSE':
      return new StartError(
        `Port ${port} on ${host} is taken by another program. Choose another with --port, or --port 0 for a free one.`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new StartError(`This machine has no address ${host}. Give one that it has with --host.`);
    case 'EACCES':
      return new StartError(`Port ${port} needs rights that this user has not. Choose one above 1023.`);
    default:
      return error;
  }
}
