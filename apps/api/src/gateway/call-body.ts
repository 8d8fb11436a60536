import { isUtf8 } from 'node:buffer';
import { type BerthError, berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import { formatBytes, KIB } from '#domain/units.js';
import type { EngineRoute } from './engine-routes.js';
import {
  DEEPEST,
  type Edit,
  type Entry,
  type TopLevel,
  edited,
  removal,
  topLevel,
  valueOf,
} from './top-level.js';

/** Up to here a body is parsed whole, so that what is malformed is refused before it is queued. */
const PARSE_WHOLE_BYTES = 64 * KIB;

export interface CallBody {
  readonly bytes: Buffer;
  readonly top: TopLevel;
  /** As the caller wrote it, options included. */
  readonly modelName: string;
  readonly stream: boolean;
  /** Choices asked for (`n`). */
  readonly choices: number;
  /** Whether the caller asked for the usage chunk of a stream. */
  readonly includeUsage: boolean;
  readonly maxTokens?: number;
  /** Text of the prompt, pictures left out. */
  readonly promptBytes: number;
  readonly pictures: number;
  /** Options for Berth in the body; taken off before the engine sees it. */
  readonly berth?: Readonly<Record<string, unknown>>;
  readonly intent?: string;
  readonly session?: string;
}

/** Files that Windows wrote begin with a byte order mark, which no parser of JSON takes. */
const withoutMark = (bytes: Buffer): Buffer =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;

const bad = (message: string, param?: string): BerthError =>
  berthError('invalid_request', message, param === undefined ? {} : { param });

/** @returns what the front door must know of a body, or the 400 that names what is wrong with it. */
export function readCallBody(came: Buffer, endpoint: EngineRoute): Result<CallBody> {
  const bytes = withoutMark(came);
  if (!isUtf8(bytes)) return err(bad('The body is not valid UTF-8. Send JSON in UTF-8.'));
  const parsed = bytes.length <= PARSE_WHOLE_BYTES ? parseWhole(bytes) : undefined;
  if (parsed?.malformed !== undefined) return err(bad(`The body is not valid JSON: ${parsed.malformed}.`));
  const scanned = topLevel(bytes, parsed?.text);
  if (!scanned.ok) return err(bad(`The body is not a valid JSON object: ${scanned.error}.`));
  const top = scanned.value;
  for (const entry of top.entries) {
    if (OURS.has(entry.key) && entryOf(top, entry.key) !== entry) {
      return err(
        bad(
          `The body has "${entry.key}" more than once. Send it once, so that it is clear what is meant.`,
          entry.key,
        ),
      );
    }
  }
  return readFields(bytes, top, endpoint, parsed?.value);
}

/** Of entries with the same key the last, as parsers have it. */
function entryOf({ entries }: TopLevel, key: string): Entry | undefined {
  for (let i = entries.length - 1; i >= 0; i -= 1) if (entries[i]?.key === key) return entries[i];
  return undefined;
}

const EMPTY: unknown = {};

/**
 * What this side parses is small by its nature: a field of megabytes, or nested without end, would hold up every call
 * while it is read. Longer ones are refused; `metadata` and `user` are the caller's own, and are then left unread.
 */
const LONGEST_BYTES: Readonly<Record<string, number>> = {
  model: 4 * KIB,
  stream: 64,
  stream_options: KIB,
  berth: 4 * KIB,
  max_tokens: 64,
  n: 64,
  max_completion_tokens: 64,
  metadata: 16 * KIB,
  user: 16 * KIB,
};
const LIMITS = Object.entries(LONGEST_BYTES);
const UNREAD_WHEN_LONG = new Set(['metadata', 'user']);

/** Fields that this side reads: twice the same one would be read one way here and another way by the engine. */
const OURS = new Set(['model', 'stream', 'stream_options', 'berth', 'max_tokens', 'max_completion_tokens']);

/** @param whole the body, where it was parsed. */
function readFields(bytes: Buffer, top: TopLevel, endpoint: EngineRoute, whole: unknown): Result<CallBody> {
  const fields = isObject(whole) ? whole : undefined;
  const value = (name: string): unknown => {
    const entry = entryOf(top, name);
    if (!entry || entry.valueEnd - entry.valueStart > (LONGEST_BYTES[name] ?? Infinity)) return undefined;
    return fields ? fields[name] : valueOf(bytes, entry);
  };
  for (const [name, limit] of LIMITS) {
    const entry = entryOf(top, name);
    const length = entry ? entry.valueEnd - entry.valueStart : 0;
    if (length <= limit || UNREAD_WHEN_LONG.has(name)) continue;
    return err(
      bad(`"${name}" is ${formatBytes(length)} long; at most ${formatBytes(limit)} are taken.`, name),
    );
  }
  for (const { key, tooDeep } of top.entries) {
    if (tooDeep && !UNREAD_WHEN_LONG.has(key))
      return err(bad(`"${key.slice(0, 40)}" is nested more than ${DEEPEST} levels deep.`, key.slice(0, 40)));
  }
  const modelName = value('model');
  if (!entryOf(top, 'model')) {
    return err(bad('The body names no "model". GET /v1/models lists the names that can be called.', 'model'));
  }
  if (typeof modelName !== 'string' || modelName.trim() === '') {
    return err(bad('"model" must be a string that names a model; GET /v1/models lists them.', 'model'));
  }
  const stream = value('stream') ?? false;
  if (typeof stream !== 'boolean') return err(bad('"stream" must be true or false.', 'stream'));
  const streamOptions = value('stream_options') ?? EMPTY;
  if (!isObject(streamOptions)) return err(bad('"stream_options" must be an object.', 'stream_options'));
  const berth = value('berth');
  if (entryOf(top, 'berth') && !isObject(berth)) {
    return err(bad('"berth" must be an object of options, such as {"context": 8192}.', 'berth'));
  }
  const maxTokens = value('max_completion_tokens') ?? value('max_tokens');
  const prompt = promptSize(bytes, top, endpoint);
  const metadata = value('metadata');
  const user = value('user');
  const intent = isObject(metadata) ? metadata['intent'] : undefined;
  const session = (isObject(metadata) ? metadata['session'] : undefined) ?? user;
  return ok({
    bytes,
    top,
    modelName,
    stream: stream && endpoint.streams,
    choices: choicesOf(value('n')),
    includeUsage: streamOptions['include_usage'] === true,
    ...(typeof maxTokens === 'number' && maxTokens > 0 ? { maxTokens } : {}),
    ...prompt,
    ...(isObject(berth) ? { berth } : {}),
    ...(typeof intent === 'string' ? { intent } : {}),
    ...(typeof session === 'string' ? { session } : {}),
  });
}

/** More than any engine gives; whether a number is sound is the engine's to say. */
const MOST_CHOICES = 1024;
const choicesOf = (n: unknown): number =>
  typeof n === 'number' && Number.isInteger(n) && n > 1 ? Math.min(n, MOST_CHOICES) : 1;

/**
 * The body as the engine gets it: the bytes that came, but for the model's name when the engine knows it by another,
 * `berth`, and `stream_options.include_usage`, without which a stream does not say what it counted.
 * @param asksForUsage false for protocols whose streams count by themselves
 */
export function bodyForEngine(body: CallBody, engineModel: string, asksForUsage = true): readonly Buffer[] {
  const { bytes, top } = body;
  const edits: Edit[] = [];
  top.entries.forEach((entry, index) => {
    if (entry.key === 'berth') edits.push(removal(top, index));
    if (entry.key === 'model' && body.modelName !== engineModel) {
      edits.push({ start: entry.valueStart, end: entry.valueEnd, text: JSON.stringify(engineModel) });
    }
    if (entry.key === 'tool_choice') edits.push(...narrowed(bytes, top, entry));
    if (entry.key === 'stream_options') {
      if (!body.stream || body.includeUsage || !asksForUsage) return;
      const given = valueOf(bytes, entry);
      const options = { ...(isObject(given) ? given : {}), include_usage: true };
      edits.push({ start: entry.valueStart, end: entry.valueEnd, text: JSON.stringify(options) });
    }
  });
  if (body.stream && asksForUsage && !top.entries.some(({ key }) => key === 'stream_options')) {
    edits.push({ start: top.close, end: top.close, text: ',"stream_options":{"include_usage":true}' });
  }
  return edited(bytes, edits);
}

/**
 * Engines of the llama.cpp family read a `tool_choice` that is an object as `auto`: the one tool that it names is sent
 * alone, and required, which says the same everywhere.
 */
function narrowed(bytes: Buffer, top: TopLevel, choice: Entry): Edit[] {
  if (bytes[choice.valueStart] !== OPEN_BRACE) return [];
  const given = valueOf(bytes, choice);
  const named = isObject(given) && isObject(given['function']) ? given['function']['name'] : undefined;
  const entry = top.entries.find(({ key }) => key === 'tools');
  const tools = entry && valueOf(bytes, entry);
  if (typeof named !== 'string' || !entry || !Array.isArray(tools)) return [];
  const tool: unknown = tools.find(
    (each: unknown) => isObject(each) && isObject(each['function']) && each['function']['name'] === named,
  );
  if (tool === undefined) return [];
  return [
    { start: choice.valueStart, end: choice.valueEnd, text: '"required"' },
    { start: entry.valueStart, end: entry.valueEnd, text: JSON.stringify([tool]) },
  ];
}

interface Parsed {
  readonly text: string;
  readonly value?: unknown;
  /** JSON.parse's own words, which name the place. */
  readonly malformed?: string;
}

function parseWhole(bytes: Buffer): Parsed {
  const text = bytes.toString('utf8');
  try {
    return { text, value: JSON.parse(text) as unknown };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    // V8 quotes the text around the place; what a caller wrote is not said back, nor kept in a log.
    if (said.startsWith('"')) return { text, malformed: 'it is no JSON value' };
    return { text, malformed: said.replace(/, ?(\.\.\.)?".*$/s, '').replace(/ in JSON at/, ' at') };
  }
}

export const whatIsMalformed = (bytes: Buffer): string | undefined => parseWhole(bytes).malformed;

const OPEN_BRACE = 0x7b;
const DATA_URL = Buffer.from('"data:image/');
const PICTURE = Buffer.from('"image_url"');

function promptSize(
  bytes: Buffer,
  top: TopLevel,
  endpoint: EngineRoute,
): { promptBytes: number; pictures: number } {
  let promptBytes = 0;
  let pictures = 0;
  for (const name of endpoint.promptFields) {
    const entry = entryOf(top, name);
    if (!entry) continue;
    promptBytes += entry.valueEnd - entry.valueStart;
    const part = bytes.subarray(entry.valueStart, entry.valueEnd);
    pictures += occurrences(part, PICTURE) >> 1;
    for (let at = part.indexOf(DATA_URL); at >= 0;) {
      const close = part.indexOf(0x22, at + 1);
      if (close < 0) break;
      promptBytes -= close - at;
      at = part.indexOf(DATA_URL, close);
    }
  }
  return { promptBytes, pictures };
}

function occurrences(bytes: Buffer, wanted: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + wanted.length)) count += 1;
  return count;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
