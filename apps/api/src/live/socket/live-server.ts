import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import { ERROR_CODES } from '#domain/errors.js';
import type { Logger } from '#runtime/logger.js';
import type { Access } from '../../access/access.js';
import { problemOf } from '../../admin/problem/problem.js';
import { subscribeIn } from './frames.js';
import { LiveClient } from './live-client.js';
import type { LiveHub } from './live-hub.js';
import type { Moments } from './moments.js';

export interface LiveServerOptions {
  readonly access: Pick<Access, 'management'>;
  readonly hub: LiveHub;
  readonly moments: Moments;
  readonly logger: Logger;
  readonly now: () => number;
}

const MOST_MESSAGE_BYTES = 16 * 1024;
const BEAT_MS = 10_000;
/** What pages name when they connect: a page cannot set headers, so its key comes as one of these. */
const PROTOCOL = 'berth.live';
const KEY_PROTOCOL = 'berth.key.';

/** WebSockets at `/live`: who may in, what each says, and that each is still there. */
export class LiveServer {
  readonly #o: LiveServerOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MOST_MESSAGE_BYTES,
    perMessageDeflate: false,
    handleProtocols: (protocols) => (protocols.has(PROTOCOL) ? PROTOCOL : false),
  });
  readonly #clients = new Set<LiveClient>();
  readonly #beat: NodeJS.Timeout;

  constructor(options: LiveServerOptions) {
    this.#o = options;
    this.#beat = setInterval(() => this.#everyBeat(), BEAT_MS);
    this.#beat.unref();
  }

  /** A request to change to WebSocket. Whoever has no right to management, or comes from a foreign page, gets no further. */
  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const entry = this.#o.access.management({
      peer: req.socket.remoteAddress,
      // Not a read: no page of elsewhere may listen, whatever key it has.
      method: 'LIVE',
      headers: { ...req.headers, ...keyIn(req) },
    });
    if (!entry.ok) {
      if (entry.error.delayMs > 0) await pause(entry.error.delayMs);
      const { error } = entry.error;
      const problem = JSON.stringify(problemOf(error, '/live'));
      socket.end(
        `HTTP/1.1 ${ERROR_CODES[error.code].status} Refused\r\nconnection: close\r\n` +
          `content-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(problem)}\r\n\r\n${problem}`,
      );
      return;
    }
    this.#server.handleUpgrade(req, socket, head, (webSocket) => this.#welcome(webSocket));
  }

  stop(): void {
    clearInterval(this.#beat);
    this.#o.moments.stop();
    for (const client of this.#clients) client.close();
    // A client that does not answer the closing must not hold up the end.
    setTimeout(() => {
      for (const client of this.#clients) client.end();
    }, 500).unref();
    this.#server.close();
  }

  #welcome(socket: WebSocket): void {
    const client = new LiveClient(socket);
    this.#clients.add(client);
    // One after the other, in their order: a second subscription must not overtake the first.
    let last = Promise.resolve();
    socket.on('message', (data, isBinary) => {
      last = last.then(() => this.#said(client, isBinary ? '' : (data as Buffer).toString()));
    });
    socket.on('pong', () => {
      client.alive = true;
    });
    socket.on('close', () => {
      this.#clients.delete(client);
      this.#o.hub.leave(client);
      client.end();
    });
    socket.on('error', (error) => this.#o.logger.debug({ err: error }, 'a client of /live broke off'));
  }

  async #said(client: LiveClient, text: string): Promise<void> {
    const wanted = subscribeIn(text);
    if (typeof wanted === 'string') {
      client.refuse(wanted);
      return;
    }
    try {
      await this.#o.hub.subscribe(client, wanted);
      if (this.#clients.has(client)) this.#o.moments.greet(client);
      else this.#o.hub.leave(client);
    } catch (error) {
      this.#o.logger.warn({ err: error }, '/live could not be begun');
      client.refuse('The event log cannot be read just now. Subscribe again in a few seconds.');
    }
  }

  #everyBeat(): void {
    const at = new Date(this.#o.now()).toISOString();
    for (const client of this.#clients) {
      if (client.ask()) client.beat(at);
      else client.end();
    }
  }
}

/** The key of a page, as a header would have it. */
function keyIn({ headers }: IncomingMessage): Record<string, string> {
  const named = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? [];
  const key = named.find((name) => name.startsWith(KEY_PROTOCOL))?.slice(KEY_PROTOCOL.length);
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
