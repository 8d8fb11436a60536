import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { invalid } from '../errors.js';
import type { StoredEvent } from '../store/tail.js';

type Options = streamsPb.ReadReq.Options;

export interface EventFilter {
  matches(event: StoredEvent): boolean;
  /** A checkpoint is due after this many events considered. */
  readonly checkpointEvery: number;
}

/** A read or a subscription, checked. */
export interface ReadRequest {
  /** Undefined for `$all`. */
  readonly stream: string | undefined;
  readonly from: number | 'start' | 'end';
  readonly backwards: boolean;
  /** How many events at most; undefined for a subscription. */
  readonly count: number | undefined;
  readonly resolveLinks: boolean;
  readonly filter: EventFilter | undefined;
  readonly structuredIds: boolean;
}

const DEFAULT_WINDOW = 32;

/** Refuses (invalid-argument) what the real server refuses. */
export function parseReadRequest(request: streamsPb.ReadReq): ReadRequest {
  const options = request.getOptions();
  if (!options) throw invalid('The read has no options.');
  const Case = streamsPb.ReadReq.Options;
  const backwards = options.getReadDirection() === Case.ReadDirection.BACKWARDS;
  const subscription = options.hasSubscription();
  if (!subscription && options.getCountOptionCase() !== Case.CountOptionCase.COUNT) {
    throw invalid('The read has neither a count nor a subscription.');
  }
  if (subscription && backwards) throw invalid('A subscription reads forwards only.');
  const uuid = options.getUuidOption();
  if (!uuid || (!uuid.hasStructured() && !uuid.hasString())) throw invalid('The read has no uuid option.');
  const count = subscription ? undefined : Number(options.getCount());
  if (count === 0) throw invalid('The read has a count of 0.');
  const { stream, from } = target(options);
  const filter = filterOf(options);
  if (filter && stream !== undefined) throw invalid('Only $all can be filtered.');
  return {
    stream,
    from,
    backwards,
    count,
    resolveLinks: options.getResolveLinks(),
    filter,
    structuredIds: uuid.hasStructured(),
  };
}

function target(options: Options): Pick<ReadRequest, 'stream' | 'from'> {
  const stream = options.getStream();
  if (stream) {
    const name = Buffer.from(stream.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8');
    if (name === '') throw invalid('The read names no stream.');
    if (stream.hasRevision()) return { stream: name, from: Number(stream.getRevision()) };
    if (!stream.hasStart() && !stream.hasEnd()) throw invalid('The read says not where to begin.');
    return { stream: name, from: stream.hasEnd() ? 'end' : 'start' };
  }
  const all = options.getAll();
  if (!all) throw invalid('The read names neither a stream nor $all.');
  const position = all.getPosition();
  if (position) return { stream: undefined, from: Number(position.getCommitPosition()) };
  if (!all.hasStart() && !all.hasEnd()) throw invalid('The read says not where to begin.');
  return { stream: undefined, from: all.hasEnd() ? 'end' : 'start' };
}

function filterOf(options: Options): EventFilter | undefined {
  const filter = options.getFilter();
  if (!filter) return undefined;
  const byStream = filter.getStreamIdentifier();
  const expression = byStream ?? filter.getEventType();
  if (!expression) throw invalid('The filter says neither stream name nor event type.');
  const matchesText = textMatcher(expression.getRegex(), expression.getPrefixList());
  const multiplier = filter.getCheckpointintervalmultiplier();
  if (multiplier === 0) throw invalid('The checkpoint interval multiplier must not be 0.');
  const Window = streamsPb.ReadReq.Options.FilterOptions.WindowCase;
  const window = filter.getWindowCase() === Window.MAX ? filter.getMax() : DEFAULT_WINDOW;
  if (window === 0) throw invalid('The search window must not be 0.');
  return {
    matches: byStream ? (event) => matchesText(event.stream) : (event) => matchesText(event.type),
    checkpointEvery: window * multiplier,
  };
}

function textMatcher(regex: string, prefixes: readonly string[]): (text: string) => boolean {
  if (regex !== '') {
    const pattern = compile(regex);
    return (text) => pattern.test(text);
  }
  if (prefixes.length === 0) throw invalid('The filter has neither a prefix nor a regular expression.');
  return (text) => prefixes.some((prefix) => text.startsWith(prefix));
}

function compile(regex: string): RegExp {
  try {
    return new RegExp(regex, 'u');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  try {
    // The unicode flavour refuses escapes that production's does not, such as `\-`.
    return new RegExp(regex);
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid(`The regular expression is not valid: ${error.message}`);
    throw error;
  }
}
