import type { Counted } from '../../usage.js';
import type { Call, ChatAnswer } from '../chat-answer.js';
import { type Json, objectOf } from '../json.js';

/** What a response says of its request, and who it is. */
export interface ResponseHead {
  readonly id: string;
  readonly createdAtSeconds: number;
  readonly request: Json;
}

export type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed';

export function usageOf({ tokens }: Counted): Json {
  const { prompt = 0, cached = 0, output = 0, reasoning = 0 } = tokens;
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  };
}

/** The whole response object; the SDKs read most of it without looking whether it is there. */
export function responseOf(
  { id, createdAtSeconds, request }: ResponseHead,
  status: Status,
  output: readonly Json[],
  more: Json = {},
): Json {
  const reasoning = objectOf(request['reasoning']);
  return {
    id,
    object: 'response',
    created_at: createdAtSeconds,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    max_tool_calls: null,
    model: request['model'],
    output,
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: { effort: reasoning['effort'] ?? null, summary: null },
    service_tier: 'default',
    store: false,
    temperature: request['temperature'] ?? null,
    text: { format: objectOf(request['text'])['format'] ?? { type: 'text' } },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    top_logprobs: request['top_logprobs'] ?? 0,
    top_p: request['top_p'] ?? null,
    truncation: 'disabled',
    usage: null,
    user: request['user'] ?? null,
    metadata: request['metadata'] ?? {},
    ...more,
  };
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export const reasoningItem = (id: string, text: string | undefined, status: ItemStatus): Json => ({
  id,
  type: 'reasoning',
  summary: [],
  content: text === undefined ? [] : [{ type: 'reasoning_text', text }],
  encrypted_content: null,
  status,
});

export const textPart = (text: string, logprobs: readonly unknown[] = []): Json => ({
  type: 'output_text',
  text,
  annotations: [],
  logprobs,
});

export const messageItem = (id: string, content: readonly Json[], status: ItemStatus): Json => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content,
});

export const callItem = (id: string, call: Call, status: ItemStatus): Json => ({
  id,
  type: 'function_call',
  status,
  call_id: call.id,
  name: call.name,
  arguments: call.arguments,
});

/** How a response ends for a reason of the chat form. */
export function endOf(finish: string | undefined): { status: Status; details: Json | null } {
  if (finish === 'length') return { status: 'incomplete', details: { reason: 'max_output_tokens' } };
  if (finish === 'content_filter') return { status: 'incomplete', details: { reason: 'content_filter' } };
  return { status: 'completed', details: null };
}

/** Ids of items, which must differ within a response and be the same in all its events. */
export const itemId = (prefix: 'rs' | 'msg' | 'fc', responseId: string, index: number): string =>
  `${prefix}_${responseId.slice('resp_'.length)}_${index}`;

export function wholeResponse(head: ResponseHead, answer: ChatAnswer): Json {
  const { status, details } = endOf(answer.finish);
  const output: Json[] = [];
  const next = (prefix: 'rs' | 'msg' | 'fc') => itemId(prefix, head.id, output.length);
  if (answer.reasoning !== '') output.push(reasoningItem(next('rs'), answer.reasoning, 'completed'));
  if (answer.text !== '' || answer.calls.length === 0) {
    const end: ItemStatus = status === 'incomplete' && answer.calls.length === 0 ? 'incomplete' : 'completed';
    output.push(messageItem(next('msg'), [textPart(answer.text, answer.logprobs)], end));
  }
  answer.calls.forEach((call, index) => {
    const cut = status === 'incomplete' && index === answer.calls.length - 1;
    output.push(callItem(next('fc'), call, cut ? 'incomplete' : 'completed'));
  });
  return responseOf(head, status, output, { incomplete_details: details, usage: usageOf(answer.counted) });
}
