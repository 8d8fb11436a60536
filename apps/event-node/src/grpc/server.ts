import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import { GRPC } from '../protocol/status.js';
import { GrpcCall } from './call.js';

/** As in production, so that a client that leaves reads open meets the same wall here. */
const MAX_OPEN_CALLS = 100;
/** How far a client may send ahead; with HTTP/2's 64 KiB batches of events arrive a third slower. */
const RECEIVE_WINDOW_BYTES = 4 * 1024 * 1024;
const PINGS = { everyMs: 10_000, withinMs: 20_000 };

export type Handler = (call: GrpcCall) => void;

/**
 * gRPC's server side over node's HTTP/2. Written here rather than taken from grpc-js because that spends more on the
 * way of one message through its layers than the log spends on the event: no message of a busy stream is looked at
 * alone here, neither in nor out.
 */
export class GrpcServer {
  readonly #http2: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  #draining = false;

  /** Methods by path; any other is UNIMPLEMENTED. */
  constructor(
    readonly methods: ReadonlyMap<string, Handler>,
    readonly pings: { readonly everyMs: number; readonly withinMs: number } = PINGS,
  ) {
    this.#http2 = createServer({
      settings: { maxConcurrentStreams: MAX_OPEN_CALLS, initialWindowSize: RECEIVE_WINDOW_BYTES },
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    });
    this.#http2.on('session', (session) => this.#watch(session));
    this.#http2.on('sessionError', () => undefined);
    this.#http2.on('stream', (stream, headers) => {
      const type = headers['content-type'];
      if (headers[':method'] !== 'POST' || !type?.startsWith('application/grpc')) {
        stream.on('error', () => undefined);
        stream.respond({ ':status': 415 }, { endStream: true });
        return;
      }
      const call = new GrpcCall(stream, headers);
      const path = headers[':path'] ?? '';
      const handle = this.methods.get(path);
      if (handle) handle(call);
      else {
        const message = `This node does not implement ${path}.`;
        call.fail({ code: GRPC.UNIMPLEMENTED, message, trailers: {} });
      }
    });
  }

  /** Takes a connection that speaks HTTP/2. */
  accept(connection: Duplex): void {
    this.#http2.emit('connection', connection);
  }

  /** Asks clients to go once their open calls have ended. */
  drain(): void {
    this.#draining = true;
    for (const session of this.#sessions) session.close();
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy();
  }

  #watch(session: ServerHttp2Session): void {
    if (this.#draining) {
      session.close();
      return;
    }
    this.#sessions.add(session);
    session.setLocalWindowSize(RECEIVE_WINDOW_BYTES);
    session.on('error', () => undefined);
    const ping = setInterval(this.#pinging(session), this.pings.everyMs);
    ping.unref();
    session.on('close', () => {
      clearInterval(ping);
      this.#sessions.delete(session);
    });
  }

  /**
   * A peer that is gone without a word holds calls open for ever; one that does not answer is such a peer. Counted in pings
   * and not by the clock: when this process or its machine stood still, the answers of all lie unread, and it must not
   * drop everybody before it has read one.
   */
  #pinging(session: ServerHttp2Session): () => void {
    const most = Math.max(1, Math.ceil(this.pings.withinMs / this.pings.everyMs));
    let unanswered = 0;
    return () => {
      if (session.destroyed || session.closed) return;
      if (unanswered >= most) {
        session.destroy();
        return;
      }
      unanswered += 1;
      // One that could not be sent, or was given up, is told of by an error.
      session.ping((error) => {
        if (error === null) unanswered = 0;
      });
    };
  }
}
