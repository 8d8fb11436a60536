import type { FoundModel } from '#domain/events/catalog-events.js';
import { type BerthError, berthError } from '#domain/errors.js';
import type { CallBody } from './call-body.js';
import { CHAT, type EngineRoute } from './engine-routes.js';

/** No vocabulary in use has a longer token: the longest are runs of 128 spaces. */
const MOST_BYTES_PER_TOKEN = 128;
/** `\u0041` is six bytes of JSON for one of text. */
const ESCAPE_BYTES = 5;
const BACKSLASH = 0x5c;
/** What is sent beside text is no text, however long it is. */
const NOT_TEXT = ['"input_audio"', '"image', '"audio', '"video', '"file_data"', 'data:'].map((mark) =>
  Buffer.from(mark),
);

/**
 * A prompt of which it is certain, by its bytes alone, that it is longer than the model was trained for: an engine would
 * read it for a minute before it says so. Nothing is refused that could fit: this is a lower bound, far below an estimate.
 */
export function certainlyTooLong(
  body: CallBody,
  route: EngineRoute,
  model: FoundModel,
): BerthError | undefined {
  if (route !== CHAT) return undefined;
  const contexts = model.artifacts.map(({ geometry }) => geometry?.trainedContextTokens ?? Infinity);
  const most = Math.max(...contexts);
  const mostBytes = most * MOST_BYTES_PER_TOKEN;
  if (body.promptBytes <= mostBytes || !Number.isFinite(mostBytes)) return undefined;
  const messages = body.top.entries.find(({ key }) => key === 'messages');
  if (!messages) return undefined;
  const text = body.bytes.subarray(messages.valueStart, messages.valueEnd);
  if (NOT_TEXT.some((mark) => text.includes(mark))) return undefined;
  const textBytes = text.length - ESCAPE_BYTES * backslashes(text, (text.length - mostBytes) / ESCAPE_BYTES);
  if (textBytes <= mostBytes) return undefined;
  const promptTokens = Math.ceil(textBytes / MOST_BYTES_PER_TOKEN);
  return berthError(
    'context_length_exceeded',
    `This model's maximum context length is ${most} tokens. ` +
      `However, your messages resulted in at least ${promptTokens} tokens.`,
    { param: 'messages', details: { contextTokens: most, leastPromptTokens: promptTokens } },
  );
}

/** Counted no further than it matters. */
function backslashes(bytes: Buffer, most: number): number {
  let count = 0;
  for (let at = bytes.indexOf(BACKSLASH); at >= 0 && count <= most; at = bytes.indexOf(BACKSLASH, at + 1))
    count += 1;
  return count;
}
