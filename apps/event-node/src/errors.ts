import type { WireExpectation } from './protocol/expectation.js';

/** Why the node refuses; the table that turns each into gRPC statuses and batch errors is in `protocol/status.ts`. */
export type Refusal =
  | {
      readonly code: 'wrong-expected-version';
      readonly stream: string;
      readonly expected: WireExpectation;
      /** The stream's last revision, -1 when there is none. */
      readonly actual: number;
    }
  | { readonly code: 'stream-deleted'; readonly stream: string }
  | { readonly code: 'access-denied' }
  | { readonly code: 'unauthenticated' }
  | { readonly code: 'timeout' }
  | { readonly code: 'append-too-large'; readonly limitBytes: number }
  | { readonly code: 'missing-metadata-property'; readonly required: readonly string[] }
  | { readonly code: 'bad-request' }
  | { readonly code: 'invalid-argument' }
  | { readonly code: 'bad-stream-name' }
  | { readonly code: 'storage-failed' }
  | { readonly code: 'not-ready' }
  | { readonly code: 'cancelled' };

export type RefusalCode = Refusal['code'];

/** A refusal with the sentence that a person reads. */
export class NodeError extends Error {
  override readonly name = 'NodeError';
  constructor(
    readonly refusal: Refusal,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
  get code(): RefusalCode {
    return this.refusal.code;
  }
}

export const invalid = (message: string): NodeError => new NodeError({ code: 'invalid-argument' }, message);
export const deleted = (stream: string): NodeError =>
  new NodeError({ code: 'stream-deleted', stream }, `Event stream '${stream}' is deleted.`);
export const notReady = (): NodeError => new NodeError({ code: 'not-ready' }, 'Server Is Not Ready');

/** A start that a person can mend: its message stands alone, without a stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
