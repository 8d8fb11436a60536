import type { WebSocket } from 'ws';
import { frame } from './frames.js';

/** Not read yet by a client: above this it has fallen behind, and is told so instead of more. */
const MOST_WAITING_BYTES = 1024 * 1024;
/** A client that has fallen behind may take so long to read what waits for it. */
const LAG_MS = 60_000;

/** One client of `/live`: what it wants, how far it was told, and whether it keeps up. */
export class LiveClient {
  readonly #socket: WebSocket;
  topics: ReadonlySet<string> = new Set();
  /** The topics as a key: clients with the same ones are sent the same text. */
  group = '';
  alive = true;
  #told = 0n;
  #lagged = false;
  #lagTimer: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  get lagged(): boolean {
    return this.#lagged;
  }

  /** From here on it is told everything after the position. */
  begin(topics: ReadonlySet<string>, told: bigint): void {
    this.topics = topics;
    this.group = [...topics].sort().join();
    this.#told = told;
    this.#lagged = false;
    clearTimeout(this.#lagTimer);
  }

  /** @param position up to which it has everything once it has read this; none for what is of the moment. */
  send(text: string, position?: bigint): void {
    if (this.#lagged) return;
    if (this.#socket.bufferedAmount > MOST_WAITING_BYTES) {
      this.#fallBehind();
      return;
    }
    this.#socket.send(text);
    if (position !== undefined) this.#told = position;
  }

  /** Nothing of a client's topics happened: it has everything up to here all the same. */
  passed(position: bigint): void {
    if (!this.#lagged) this.#told = position;
  }

  beat(at: string): void {
    this.send(frame({ type: 'beat', position: this.#told.toString(), at }));
  }

  refuse(message: string): void {
    this.send(frame({ type: 'error', code: 'invalid_request', message }));
  }

  /** Whether it answered since the last time it was asked. */
  ask(): boolean {
    if (!this.alive) return false;
    this.alive = false;
    this.#socket.ping();
    return true;
  }

  end(): void {
    clearTimeout(this.#lagTimer);
    this.#socket.terminate();
  }

  close(): void {
    clearTimeout(this.#lagTimer);
    this.#socket.close(1001, 'Berth is stopping');
  }

  /** The word of it stands behind what waits already, and is the last until the client subscribes again. */
  #fallBehind(): void {
    this.#lagged = true;
    this.#socket.send(frame({ type: 'lagged', position: this.#told.toString() }));
    this.#lagTimer = setTimeout(() => this.end(), LAG_MS);
    this.#lagTimer.unref();
  }
}
