import type { Counted } from '../../usage.js';
import type { Call, ChatAnswer } from '../chat-answer.js';
import { type Json, parsedObject } from '../json.js';

export interface MessageHead {
  readonly id: string;
  readonly model: string;
}

/** Prompt tokens that came from a cache, or went into one, are counted apart. */
export function usageOf({ tokens, cacheWrittenTokens: written = 0 }: Counted): Json {
  const { prompt = 0, cached = 0, output = 0 } = tokens;
  return {
    input_tokens: Math.max(0, prompt - cached - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: output,
  };
}

/** Why it ended, and the stop string that did it, as far as the engine says. */
export function stopOf(finish: string | undefined, stopString: string | undefined): Json {
  const reason =
    finish === 'length'
      ? 'max_tokens'
      : finish === 'tool_calls' || finish === 'function_call'
        ? 'tool_use'
        : finish === 'content_filter'
          ? 'refusal'
          : stopString === undefined
            ? 'end_turn'
            : 'stop_sequence';
  return { stop_reason: reason, stop_sequence: reason === 'stop_sequence' ? stopString : null };
}

export function messageOf(head: MessageHead, answer: ChatAnswer): Json {
  const content: Json[] = [];
  if (answer.reasoning !== '') content.push({ type: 'thinking', thinking: answer.reasoning, signature: '' });
  if (answer.text !== '') content.push({ type: 'text', text: answer.text });
  for (const call of answer.calls) content.push(toolUse(call));
  return {
    id: head.id,
    type: 'message',
    role: 'assistant',
    model: head.model,
    content,
    ...stopOf(answer.finish, answer.stopString),
    usage: usageOf(answer.counted),
  };
}

const toolUse = (call: Call): Json => ({
  type: 'tool_use',
  id: call.id,
  name: call.name,
  // Cut off by the length, it is no JSON: what the caller then gets is an empty call with `max_tokens`.
  input: parsedObject(call.arguments) ?? {},
});
