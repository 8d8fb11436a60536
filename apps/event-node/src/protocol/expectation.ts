/** What the writer expects of a stream: a revision, or one of the three words. */
export type WireExpectation = number | 'any' | 'no_stream' | 'stream_exists';

/** The number that the `expected-version` trailer carries. */
export function expectationNumber(expected: WireExpectation): number {
  switch (expected) {
    case 'any':
      return -2;
    case 'no_stream':
      return -1;
    case 'stream_exists':
      return -4;
    default:
      return expected;
  }
}

interface ExpectationOptions {
  hasRevision(): boolean;
  getRevision(): string;
  hasNoStream(): boolean;
  hasAny(): boolean;
  hasStreamExists(): boolean;
}

/** Reads the expectation of an Append, Delete or Tombstone request; undefined when none is set. */
export function expectationOf(options: ExpectationOptions): WireExpectation | undefined {
  if (options.hasRevision()) return Number(options.getRevision());
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasAny()) return 'any';
  if (options.hasStreamExists()) return 'stream_exists';
  return undefined;
}
