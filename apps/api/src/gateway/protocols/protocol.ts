import { type BerthError, berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import type { AnswerFilter } from '../answer-filter.js';
import { whatIsMalformed } from '../call-body.js';
import type { EngineRoute } from '../engine-routes.js';
import { dataOf, frames } from '../sse-frames.js';
import { isLast } from './chat-answer.js';
import { isObject, type Json, parsedObject } from './json.js';

/** A body that an engine which can do it gets nearly as it came. */
export interface NativeBody {
  /** What an engine says of itself when it has the route. */
  readonly capability: 'messages' | 'responses';
  readonly target: EngineRoute;
  readonly bytes: Buffer;
}

/** A caller's body as one of the engines' own routes takes it. */
export interface Prepared {
  readonly bytes: Buffer;
  /** Whose body it is now. */
  readonly target: EngineRoute;
  /** The answer, where no engine has to say it: the caller only wanted the model to be loaded. */
  readonly whenLoaded?: () => Buffer;
  /** The same for an engine that has the caller's own route. */
  readonly native?: NativeBody;
  /** With `whenLoaded`: the caller wants the model to go, and nothing is loaded for that. */
  readonly unloads?: boolean;
}

/** One call in a protocol that engines do not speak: its request on the way in, its answer on the way out. */
export interface ProtocolCall extends AnswerFilter {
  prepare(bytes: Buffer): Result<Prepared>;
  /** How long the call waited for a load; said before the answer begins. */
  coldSeconds?(seconds: number): void;
  /** Said before each request to an engine: whether it is asked by its own route of this protocol. */
  asks?(natively: boolean): void;
  /** What the caller knows fields of the engine's body as, where it is not by the same name. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Headers of every answer beside the usual. */
  readonly headers?: readonly (readonly [string, string])[];
}

export interface CallFacts {
  readonly callId: string;
  readonly now: () => number;
}

export interface Protocol {
  /** How a stream that waits is kept: by words in it, or, where it has none, as a call that is not streamed. */
  readonly waits: 'by-words' | 'by-interim-answers';
  open(facts: CallFacts): ProtocolCall;
}

export const bad = (message: string, param?: string): BerthError =>
  berthError('invalid_request', message, param === undefined ? {} : { param });

/** For what a translation cannot carry over; thrown inside it and turned into the 400 at its edge. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable';
  constructor(
    message: string,
    readonly param?: string,
  ) {
    super(message);
  }
}

/**
 * An error about a field of the engine's body, said of the field that the caller wrote. What stands inside of a list is
 * said of the whole: a translation has joined and moved its parts.
 */
export function inFieldsOf({ fields }: Pick<ProtocolCall, 'fields'>, error: BerthError): BerthError {
  const [, name = '', inside = ''] = /^([a-z_]+)(.*)$/.exec(error.param ?? '') ?? [];
  const known = fields?.[name];
  if (known === undefined) return error;
  const renamed = (rest: string) => (rest.startsWith('[') ? known : known + rest);
  const quoted = new RegExp(`"${name}((?:\\[\\d+\\]|\\.[a-z_]+)*)"`, 'g');
  const message = error.message.replace(quoted, (_, rest: string) => `"${renamed(rest)}"`);
  return { ...error, message, param: renamed(inside) };
}

/** Reads the body, translates it, and writes it again: the one place where a translation's refusals become errors. */
export function translated(bytes: Buffer, translate: (body: Json) => Json): Result<Buffer> {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString('utf8'));
  } catch {
    // The words are the same as on every other route.
    return err(bad(`The body is not valid JSON: ${whatIsMalformed(bytes) ?? 'it cannot be read'}.`));
  }
  if (!isObject(body)) return err(bad('The body is not a JSON object.'));
  try {
    return ok(Buffer.from(JSON.stringify(translate(body))));
  } catch (error) {
    if (error instanceof Untranslatable) return err(bad(error.message, error.param));
    // The writer of JSON has as little stack as anyone.
    if (error instanceof RangeError) return err(bad('The body is nested too deep to be read.'));
    throw error;
  }
}

/** A protocol that some engines have a route of their own for; the others get it as a chat. */
interface Forms {
  readonly target: EngineRoute;
  readonly native: Omit<NativeBody, 'bytes'>;
  readonly chat: (body: Json) => Json;
  /** Undefined where the body asks for what such a route is not known to do. */
  readonly own: (bytes: Buffer, body: Json) => Buffer | undefined;
}

/** The body as a chat, and beside it, where that can be, for an engine that has the caller's own route. */
export function inBothForms(bytes: Buffer, { target, native, chat, own }: Forms): Result<Prepared> {
  let ownBytes: Buffer | undefined;
  const translation = translated(bytes, (body) => {
    ownBytes = own(bytes, body);
    return chat(body);
  });
  if (!translation.ok) return translation;
  const prepared = { bytes: translation.value, target };
  return ok(ownBytes ? { ...prepared, native: { ...native, bytes: ownBytes } } : prepared);
}

/** Tells an engine's whole answer in another protocol; `tell` gives nothing for one that cannot be read. */
export function translateWhole(bytes: Buffer, tell: (answer: Json) => Json | undefined): Result<Buffer> {
  const answer = parsedObject(bytes.toString('utf8'));
  const told = answer && tell(answer);
  if (told) return ok(Buffer.from(JSON.stringify(told)));
  return err(berthError('engine_failed', 'The engine gave an answer that cannot be read. Ask again.'));
}

/** What tells a stream anew, event by event. */
interface Telling {
  chunk(event: Json): string;
  done(): string;
}

/** An engine's own events have their end among them; `[DONE]` may follow it, and means nothing. */
export const tellFrames = (bytes: Buffer, telling: Telling, natively: boolean): Buffer | undefined =>
  natively
    ? translateFrames(
        bytes,
        (event) => telling.chunk(event) + (isLast(event) ? telling.done() : ''),
        () => '',
      )
    : translateFrames(
        bytes,
        (chunk) => telling.chunk(chunk),
        () => telling.done(),
      );

/** Reads an engine's frames for a translation: `chunk` for each, `done` for `[DONE]`. */
export function translateFrames(
  bytes: Buffer,
  chunk: (chunk: Json) => string,
  done: () => string,
): Buffer | undefined {
  let out = '';
  for (const frame of frames(bytes)) {
    const data = dataOf(frame);
    if (data === undefined) continue;
    if (data === '[DONE]') {
      out += done();
      continue;
    }
    const read = parsedObject(data);
    if (read) out += chunk(read);
  }
  return out === '' ? undefined : Buffer.from(out);
}
