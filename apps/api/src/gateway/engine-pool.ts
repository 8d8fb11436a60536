import { EngineConnection, type UpstreamHandler, type UpstreamRequest } from './engine-connection.js';

/** Engines close idle connections after 5 s: ours are given up before. */
const KEEP_ALIVE_MS = 4000;
const SWEEP_MS = 1000;

/** The connections to one engine, without a bound of their own (slots bound the calls). */
export class EnginePool {
  readonly port: number;
  /** The one that was used last is used next: what a burst opened becomes idle and goes. */
  readonly #idle: EngineConnection[] = [];
  readonly #all = new Set<EngineConnection>();
  #sweep: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(port: number) {
    this.port = port;
  }

  /** Over a connection that is there, else over a new one. */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): void {
    const oldest = performance.now() - KEEP_ALIVE_MS;
    for (let known = this.#idle.pop(); known; known = this.#idle.pop()) {
      if (known.usable && known.idleSinceMs > oldest) {
        known.send(request, handler);
        return;
      }
      known.destroy();
    }
    this.#open().send(request, handler);
  }

  /** Over a connection that nobody used before. */
  dispatchFresh(request: UpstreamRequest, handler: UpstreamHandler): void {
    this.#open().send(request, handler);
  }

  /** What is under way is finished; nothing is kept. */
  close(): void {
    this.#closing = true;
    clearInterval(this.#sweep);
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  destroy(): void {
    this.close();
    for (const connection of [...this.#all]) connection.abort(new Error('the api stops'));
  }

  #open(): EngineConnection {
    const connection = new EngineConnection(
      this.port,
      (free) => this.#free(free),
      (gone) => this.#all.delete(gone),
    );
    this.#all.add(connection);
    return connection;
  }

  #free(connection: EngineConnection): void {
    if (this.#closing) {
      connection.destroy();
      return;
    }
    connection.idleSinceMs = performance.now();
    this.#idle.push(connection);
    this.#sweep ??= setInterval(() => this.#dropOld(), SWEEP_MS).unref();
  }

  #dropOld(): void {
    const oldest = performance.now() - KEEP_ALIVE_MS;
    const old = this.#idle.filter((connection) => !connection.usable || connection.idleSinceMs <= oldest);
    if (old.length > 0) {
      const kept = this.#idle.filter((connection) => !old.includes(connection));
      this.#idle.splice(0, this.#idle.length, ...kept);
      for (const connection of old) connection.destroy();
    }
    if (this.#idle.length > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}
