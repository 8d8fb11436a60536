import type { WireExpectation } from '../protocol/expectation.js';
import { deleted, NodeError } from '../errors.js';

/** What the decision needs to know of a stream. */
export interface StreamFacts {
  readonly stream: string;
  /** The last revision, -1 for none. */
  readonly last: number;
  readonly tombstoned: boolean;
  readonly softDeleted: boolean;
  /** The stream has metadata, perhaps set before any event. */
  readonly hasMetadata: boolean;
  /** Among the newest events of the log: where this id stands in this stream. */
  remembered(id: string): { readonly revision: number; readonly position: number } | undefined;
  /** From the log itself. */
  eventAt(revision: number): { readonly id: string; readonly position: number } | undefined;
}

export type AppendDecision =
  | { readonly kind: 'write' }
  | { readonly kind: 'already-written'; readonly revision: number; readonly position: number };

const WRITE: AppendDecision = { kind: 'write' };

export const wrongVersion = (stream: string, expected: WireExpectation, actual: number): NodeError =>
  new NodeError(
    { code: 'wrong-expected-version', stream, expected, actual },
    `Append failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: ${expected}, Actual version: ${actual}`,
  );

/**
 * Whether events with these ids are to be written, stand in the log already, or are refused. The rules are the real
 * server's: an append that is repeated under the same ids and the same expectation succeeds again.
 */
export function decideAppend(
  facts: StreamFacts,
  expected: WireExpectation,
  ids: readonly string[],
): AppendDecision {
  if (facts.tombstoned) throw deleted(facts.stream);
  if (expected === 'any') return decideByMemory(facts, expected, ids);
  if (expected === 'stream_exists') {
    if (facts.softDeleted) throw deleted(facts.stream);
    if (facts.last < 0 && !facts.hasMetadata) throw wrongVersion(facts.stream, expected, -1);
    return decideByMemory(facts, expected, ids);
  }
  const behind = expected === 'no_stream' ? -1 : expected;
  if (behind === facts.last) return WRITE;
  if (behind > facts.last) throw wrongVersion(facts.stream, expected, facts.last);
  return decideByLog(facts, expected, behind, ids);
}

/** The same for a delete, which carries no ids. */
export function checkExpectation(facts: StreamFacts, expected: WireExpectation): void {
  if (facts.tombstoned) throw deleted(facts.stream);
  const met =
    expected === 'any' ||
    (expected === 'stream_exists' && (facts.last >= 0 || facts.hasMetadata)) ||
    (expected === 'no_stream' && (facts.last < 0 || facts.softDeleted)) ||
    expected === facts.last;
  if (!met) throw wrongVersion(facts.stream, expected, facts.last);
}

function decideByMemory(
  facts: StreamFacts,
  expected: WireExpectation,
  ids: readonly string[],
): AppendDecision {
  let found: { readonly revision: number; readonly position: number } | undefined;
  for (const [index, id] of ids.entries()) {
    const known = facts.remembered(id);
    if (!known) {
      if (index === 0) return WRITE;
      throw wrongVersion(facts.stream, expected, facts.last);
    }
    found = known;
  }
  return found ? { kind: 'already-written', ...found } : WRITE;
}

function decideByLog(
  facts: StreamFacts,
  expected: WireExpectation,
  behind: number,
  ids: readonly string[],
): AppendDecision {
  let revision = behind;
  let position = -1;
  let same = ids.length > 0;
  for (const id of ids) {
    const event = facts.eventAt(++revision);
    if (event?.id !== id) {
      same = false;
      break;
    }
    position = event.position;
  }
  if (same) return { kind: 'already-written', revision, position };
  // A soft-deleted stream counts as none, and its revisions go on.
  if (facts.softDeleted && expected === 'no_stream') return WRITE;
  throw wrongVersion(facts.stream, expected, facts.last);
}
