import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NodeError } from '../errors.js';
import type { GrpcCall } from '../grpc/call.js';
import { callEnding } from '../protocol/status.js';

/** The sending side of a read or subscription: back-pressure, and an end that is said once. */
export class Outlet {
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(
    readonly call: GrpcCall,
    readonly onEnd: () => void,
  ) {
    call.onDrain(() => this.#wake?.());
  }

  /** The client cancelled, or its connection is gone. */
  readonly gone = (): void => this.#close();

  isOver(): boolean {
    return this.#ended;
  }

  /** False when the client does not keep up: then wait for `drained` before the next one. */
  write(frame: Buffer): boolean {
    return this.#ended || this.call.write(frame);
  }

  /** Also returns when the call is over. */
  async drained(): Promise<void> {
    if (this.#ended || !this.call.needsDrain) return;
    await this.sleep(() => () => undefined);
  }

  /** Waits for `wake`, for the client to read on, or for the end of the call. */
  async sleep(subscribe: (wake: () => void) => () => void): Promise<void> {
    if (this.#ended) return;
    await new Promise<void>((resolve) => {
      const forget = subscribe(() => this.#wake?.());
      this.#wake = () => {
        this.#wake = undefined;
        forget();
        resolve();
      };
    });
  }

  /** Lets other calls have their turn between two pages. */
  async breathe(): Promise<void> {
    await nextTurn();
  }

  end(): void {
    if (this.#ended) return;
    this.#close();
    this.call.end();
  }

  fail(error: unknown): void {
    if (this.#ended) return;
    this.#close();
    this.call.fail(callEnding(error));
  }

  readonly stop = (reason: NodeError): void => this.fail(reason);

  #close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onEnd();
    this.#wake?.();
  }
}
