import type { ServerWritableStream } from '@grpc/grpc-js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NodeError } from '../errors.js';
import { callEnding } from '../protocol/status.js';

/** The sending side of a read or subscription: back-pressure, and an end that is said once. */
export class Outlet {
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(
    readonly call: ServerWritableStream<unknown, Buffer>,
    readonly onEnd: () => void,
  ) {
    const gone = () => this.#close();
    call.on('cancelled', gone);
    call.on('error', gone);
    call.on('close', gone);
    call.on('drain', () => this.#wake?.());
  }

  isOver(): boolean {
    return this.#ended;
  }

  /** False when the client does not keep up: then wait for `drained` before the next one. */
  write(frame: Buffer): boolean {
    return this.#ended || this.call.write(frame);
  }

  /** Also returns when the call is over. */
  async drained(): Promise<void> {
    if (this.#ended || !this.call.writableNeedDrain) return;
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
    this.call.emit('error', callEnding(error));
  }

  readonly stop = (reason: NodeError): void => this.fail(reason);

  #close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onEnd();
    this.#wake?.();
  }
}
