import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { NestParts, StartedNest } from './nest.js';

/**
 * Management and the agents' line. Their frameworks are half of the code that the api loads, and no call needs them: they are
 * loaded once the front door listens. Until then their requests wait, a second or so.
 */
export class Management {
  readonly #parts: NestParts;
  readonly #waiting = new Map<ServerResponse, IncomingMessage>();
  #handler: RequestListener | undefined;
  #started: Promise<StartedNest> | undefined;

  constructor(parts: NestParts) {
    this.#parts = parts;
  }

  handle(req: IncomingMessage, res: ServerResponse): void {
    if (this.#handler) {
      this.#handler(req, res);
      return;
    }
    this.#waiting.set(res, req);
    res.once('close', () => this.#waiting.delete(res));
  }

  /** @returns where agents dial. Called once. */
  async start(server: Server): Promise<string> {
    this.#started = import('./nest.js').then(({ startNest }) => startNest(this.#parts, server));
    const { handler, agentLine } = await this.#started;
    this.#handler = handler;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [res, req] of waiting) handler(req, res);
    return agentLine;
  }

  /** After the server has closed. */
  async close(): Promise<void> {
    const started = await this.#started?.catch(() => undefined);
    await started?.close();
  }
}
