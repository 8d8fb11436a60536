import type { Counted } from '../../usage.js';
import type { Call } from '../chat-answer.js';
import { type Json, parsedObject } from '../json.js';

/** What the durations of an answer are made of. */
export interface Clock {
  readonly now: () => number;
  readonly startedAtMs: number;
  /** Seconds that the call waited for a load. */
  readonly coldSeconds: number;
}

const NANOSECONDS_PER_MS = 1e6;
const nanoseconds = (ms: number): number => Math.round(ms * NANOSECONDS_PER_MS);

/** The figures at the end of an answer, in nanoseconds. */
export function figures(clock: Clock, { tokens, timings }: Counted): Json {
  return {
    total_duration: nanoseconds(Math.max(0, clock.now() - clock.startedAtMs)),
    load_duration: nanoseconds(clock.coldSeconds * 1000),
    prompt_eval_count: tokens.prompt ?? 0,
    prompt_eval_duration: nanoseconds(timings.promptMs ?? 0),
    eval_count: tokens.output ?? 0,
    eval_duration: nanoseconds(timings.decodeMs ?? 0),
  };
}

export const doneReason = (finish: string | undefined): string => (finish === 'length' ? 'length' : 'stop');

export const toolCall = (call: Call, index: number): Json => ({
  id: call.id,
  function: { index, name: call.name, arguments: parsedObject(call.arguments) ?? {} },
});

/** How a route puts text, thoughts and calls into its lines. */
export interface Words {
  readonly thinking?: string;
  readonly text: string;
  readonly calls?: readonly Json[];
  readonly logprobs?: readonly unknown[];
}

export type Shape = (words: Words) => Json;

const some = (list: readonly unknown[] | undefined): boolean => list !== undefined && list.length > 0;

export const CHAT_SHAPE: Shape = ({ thinking, text, calls, logprobs }) => ({
  message: {
    role: 'assistant',
    content: text,
    ...(thinking === undefined || thinking === '' ? {} : { thinking }),
    ...(some(calls) ? { tool_calls: calls } : {}),
  },
  ...(some(logprobs) ? { logprobs } : {}),
});

export const GENERATE_SHAPE: Shape = ({ thinking, text, logprobs }) => ({
  response: text,
  ...(thinking === undefined || thinking === '' ? {} : { thinking }),
  ...(some(logprobs) ? { logprobs } : {}),
});
