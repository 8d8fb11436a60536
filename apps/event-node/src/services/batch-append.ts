import { messageOf, NodeError } from '../errors.js';
import type { GrpcCall } from '../grpc/call.js';
import type { Handler } from '../grpc/server.js';
import {
  batchSuccess,
  decodeBatchChunk,
  type BatchChunk,
  type BatchOptions,
} from '../protocol/batch-append.js';
import type { ProposedEvent } from '../protocol/record.js';
import { batchRefusal, callEnding } from '../protocol/status.js';
import { APPEND_TIMEOUT_MS, eventBytes, MAX_APPEND_BYTES, tooLarge, tooLate } from './append-limits.js';
import { principalOf, type NodeContext } from './context.js';

/** An append whose chunks are still coming. */
interface Pending {
  readonly options: BatchOptions;
  readonly events: ProposedEvent[];
  bytes: number;
  /** Runs while chunks are awaited. */
  timer: NodeJS.Timeout | undefined;
  /** Answered already: its later chunks are dropped without a word. */
  answered: boolean;
}

/** Reading stops above this many appends in flight and starts again below half of it. */
const MOST_IN_FLIGHT = 2048;
const MOST_BYTES_IN_FLIGHT = 32 * 1024 * 1024;

/**
 * One long call per client, with appends under correlation ids. Every id is answered exactly once, whatever happens: a
 * second answer would break the client's process.
 */
export function batchAppend(context: NodeContext): Handler {
  return (call) => new BatchAppendCall(context, call).start();
}

class BatchAppendCall {
  readonly #pending = new Map<string, Pending>();
  #inFlight = 0;
  #bytesInFlight = 0;
  #ended = false;
  #inputEnded = false;
  #leave: () => void = () => undefined;

  constructor(
    readonly context: NodeContext,
    readonly call: GrpcCall,
  ) {}

  start(): void {
    const { call, context } = this;
    try {
      const principal = principalOf(context, call.authorization);
      const mayWrite = (stream: string) => context.rights.check(principal, 'write', stream);
      this.#leave = context.calls.enter((reason) => this.#fail(reason));
      call.listen({
        onMessage: (bytes) => this.#message(bytes, mayWrite),
        onHalfClose: () => {
          this.#inputEnded = true;
          this.#endWhenDone();
        },
        onGone: () => this.#close(),
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  #message(bytes: Buffer, mayWrite: (stream: string) => void): void {
    if (this.#ended) return;
    try {
      this.#take(decodeBatchChunk(bytes), mayWrite);
    } catch (error) {
      this.#fail(
        error instanceof NodeError
          ? error
          : new NodeError({ code: 'bad-request' }, `A message could not be read: ${messageOf(error)}.`),
      );
    }
  }

  #take(chunk: BatchChunk, mayWrite: (stream: string) => void): void {
    const key = chunk.correlation.toString('latin1');
    const pending = this.#pending.get(key) ?? open(chunk.options);
    if (!pending) {
      if (chunk.isFinal) this.#refuse(chunk.correlation, '', badRequest('The first message has no options.'));
      return;
    }
    if (!pending.answered) {
      const refusal = this.#add(pending, chunk, mayWrite);
      if (refusal) this.#answerEarly(pending, chunk.correlation, refusal);
    }
    if (!chunk.isFinal) {
      this.#await(key, chunk.correlation, pending);
      return;
    }
    clearTimeout(pending.timer);
    this.#pending.delete(key);
    if (!pending.answered) this.#submit(chunk.correlation, pending);
  }

  /** Keeps an append whose chunks are still to come, until its deadline. */
  #await(key: string, correlation: Buffer, pending: Pending): void {
    if (this.#pending.has(key)) return;
    this.#pending.set(key, pending);
    if (pending.answered) return;
    const left = (pending.options.deadlineMs ?? Infinity) - this.context.now();
    pending.timer = setTimeout(
      () => {
        if (!pending.answered) this.#answerEarly(pending, correlation, tooLate());
      },
      Math.max(0, Math.min(APPEND_TIMEOUT_MS, left)),
    );
  }

  #add(pending: Pending, chunk: BatchChunk, mayWrite: (stream: string) => void): NodeError | undefined {
    const { stream, deadlineMs } = pending.options;
    try {
      mayWrite(stream);
    } catch (error) {
      if (error instanceof NodeError) return error;
      throw error;
    }
    if (chunk.fault) return chunk.fault;
    if (deadlineMs !== undefined && deadlineMs <= this.context.now()) return tooLate();
    for (const event of chunk.events) {
      pending.events.push(event);
      pending.bytes += eventBytes(event);
    }
    return pending.bytes > MAX_APPEND_BYTES ? tooLarge() : undefined;
  }

  #submit(correlation: Buffer, { options, events, bytes }: Pending): void {
    const { stream, expected } = options;
    this.#inFlight++;
    this.#bytesInFlight += bytes;
    this.#throttle();
    void this.context.store
      .append(stream, expected, events)
      .then(
        ({ revision, position }) => this.#write(batchSuccess(correlation, stream, revision, position)),
        // Of a disk that refuses too this is all: were the call ended, the client would drop its connection, reads and all.
        (error: unknown) => this.#refuse(correlation, stream, error),
      )
      .finally(() => {
        this.#inFlight--;
        this.#bytesInFlight -= bytes;
        this.#throttle();
        this.#endWhenDone();
      });
  }

  #answerEarly(pending: Pending, correlation: Buffer, refusal: NodeError): void {
    pending.answered = true;
    pending.events.length = 0;
    clearTimeout(pending.timer);
    this.#refuse(correlation, pending.options.stream, refusal);
  }

  #refuse(correlation: Buffer, stream: string, error: unknown): void {
    this.#write(batchRefusal(correlation, stream, error));
  }

  #write(response: Buffer): void {
    if (!this.#ended) this.call.write(response);
  }

  #throttle(): void {
    const full = this.#inFlight > MOST_IN_FLIGHT || this.#bytesInFlight > MOST_BYTES_IN_FLIGHT;
    if (full && !this.call.isPaused) this.call.pause();
    else if (this.call.isPaused && this.#inFlight < MOST_IN_FLIGHT / 2) {
      if (this.#bytesInFlight < MOST_BYTES_IN_FLIGHT / 2) this.call.resume();
    }
  }

  #endWhenDone(): void {
    if (!this.#inputEnded || this.#inFlight > 0 || this.#ended) return;
    this.#close();
    this.call.end();
  }

  #fail(reason: unknown): void {
    if (this.#ended) return;
    this.#close();
    this.call.fail(callEnding(reason));
  }

  #close(): void {
    this.#ended = true;
    this.#leave();
    for (const { timer } of this.#pending.values()) clearTimeout(timer);
    this.#pending.clear();
  }
}

const open = (options: BatchOptions | undefined): Pending | undefined =>
  options && { options, events: [], bytes: 0, answered: false, timer: undefined };

const badRequest = (message: string): NodeError => new NodeError({ code: 'bad-request' }, message);
