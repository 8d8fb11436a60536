import { type Result, err, ok } from '#domain/result.js';

/**
 * The top-level entries of a JSON object, found without parsing what is inside them: a body of megabytes (pictures, long
 * contexts) costs one walk over its bytes. Offsets are into the given bytes.
 */
export interface Entry {
  readonly key: string;
  /** Offset of the quote that opens the key. */
  readonly keyStart: number;
  readonly valueStart: number;
  /** Offset after the last byte of the value. */
  readonly valueEnd: number;
  /** The value nests deeper than any client means it. */
  readonly tooDeep?: true;
}

export interface TopLevel {
  readonly entries: readonly Entry[];
  /** Offset of the brace that closes the object. */
  readonly close: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** No client nests so deep; whoever parses it later could run out of stack, or of time. */
export const DEEPEST = 1000;

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/**
 * @param text the same as text, where somebody has it: keys are then cut out of it.
 * @returns the entries, or in words what is wrong and where (only the structure between them is checked).
 */
export function topLevel(bytes: Buffer, text?: string): Result<TopLevel, string> {
  const end = bytes.length;
  let at = skipSpace(bytes, 0);
  if (at >= end) return err('the body is empty');
  if (bytes[at] !== OPEN_BRACE) return err('the body is not a JSON object');
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === CLOSE_BRACE) return closed(bytes, [], at);
  return entriesFrom(bytes, at, text);
}

/**
 * The entries from one that is known to begin at an offset. That they reach to the end of the bytes shows that it is no
 * entry of an inner object.
 */
export function entriesFrom(bytes: Buffer, from: number, text?: string): Result<TopLevel, string> {
  const end = bytes.length;
  // Offsets are the same in both as long as every character is a byte.
  const ascii = text?.length === end ? text : undefined;
  const walk: Walk = { deepest: 0 };
  const entries: Entry[] = [];
  let at = from;
  for (;;) {
    if (bytes[at] !== QUOTE) return err(expected('a key in double quotes', at, end));
    const keyStart = at;
    const keyEnd = stringEnd(bytes, at);
    if (keyEnd < 0) return err('the body ends inside a string');
    const key = readKey(bytes, keyStart, keyEnd, ascii);
    if (key === undefined) return err(`the key at byte ${keyStart} is not a valid JSON string`);
    at = skipSpace(bytes, keyEnd);
    if (bytes[at] !== COLON) return err(expected(`":" after the key "${key}"`, at, end));
    const valueStart = skipSpace(bytes, at + 1);
    walk.deepest = 0;
    const valueEnd = skipValue(bytes, valueStart, walk);
    if (valueEnd < 0) return err(`the body ends inside the value of "${key}"`);
    if (valueEnd === valueStart) return err(expected(`a value for "${key}"`, valueStart, end));
    const entry = { key, keyStart, valueStart, valueEnd };
    entries.push(walk.deepest > DEEPEST ? { ...entry, tooDeep: true } : entry);
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return closed(bytes, entries, at);
    if (bytes[at] !== COMMA) return err(expected(`"," or "}" after the value of "${key}"`, at, end));
    at = skipSpace(bytes, at + 1);
  }
}

function closed(bytes: Buffer, entries: readonly Entry[], close: number): Result<TopLevel, string> {
  const rest = skipSpace(bytes, close + 1);
  if (rest < bytes.length) return err(`there is text after the JSON object, at byte ${rest}`);
  return ok({ entries, close });
}

const expected = (what: string, at: number, end: number): string =>
  at >= end ? `the body ends where ${what} should be` : `${what} should be at byte ${at}`;

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at += 1;
  return at;
}

/** Most strings are short, and are over before a search has begun. */
const NEAR_BYTES = 32;

/** Offset after the closing quote of the string that opens at `from`; -1 when it never closes. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = from + 1;
  for (const near = Math.min(bytes.length, at + NEAR_BYTES); at < near; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at += 1;
  }
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH && quote - 1 - slashes > from) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function readKey(bytes: Buffer, start: number, end: number, ascii: string | undefined): string | undefined {
  const raw = ascii?.slice(start + 1, end - 1) ?? bytes.toString('utf8', start + 1, end - 1);
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(bytes.toString('utf8', start, end)) as string;
  } catch {
    // Said by the caller, with the place.
    return undefined;
  }
}

interface Walk {
  deepest: number;
}

function skipValue(bytes: Buffer, from: number, walk: Walk): number {
  const first = bytes[from];
  if (first === QUOTE) return stringEnd(bytes, from);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return containerEnd(bytes, from, walk);
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte)) break;
    at += 1;
  }
  return at;
}

function containerEnd(bytes: Buffer, from: number, walk: Walk): number {
  let depth = 0;
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
      if (at < 0) return -1;
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      if (depth > walk.deepest) walk.deepest = depth;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
    at += 1;
  }
  return -1;
}

/** The value of an entry, parsed; undefined when it is no valid JSON. */
export function valueOf(bytes: Buffer, entry: Entry): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', entry.valueStart, entry.valueEnd));
  } catch {
    // The caller says which field is malformed.
    return undefined;
  }
}

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The bytes with some ranges replaced, as pieces in their order: what stays of megabytes is not copied. */
export function edited(bytes: Buffer, edits: readonly Edit[]): readonly Buffer[] {
  if (edits.length === 0) return [bytes];
  const parts: Buffer[] = [];
  let at = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    parts.push(bytes.subarray(at, edit.start), Buffer.from(edit.text));
    at = edit.end;
  }
  parts.push(bytes.subarray(at));
  return parts;
}

/** Takes an entry out with the comma that belongs to it. */
export function removal(top: TopLevel, index: number): Edit {
  const entry = top.entries[index];
  if (!entry) throw new RangeError(`There is no entry ${index}.`);
  const next = top.entries[index + 1];
  if (next) return { start: entry.keyStart, end: next.keyStart, text: '' };
  const before = top.entries[index - 1];
  return { start: before ? before.valueEnd : entry.keyStart, end: entry.valueEnd, text: '' };
}
