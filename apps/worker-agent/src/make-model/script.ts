import { type Links, linksOf } from './chain.js';
import { ASSISTANT, CALLS, END, PLAIN, SPACE, sentenceTokens } from './vocabulary.js';

/** What a chat model of ours says, in the order in which it says it. No word may stand twice in one script. */
export interface Script {
  readonly answer: string;
  /** Said before the answer, between `<think>` and `</think>`. */
  readonly reasoning?: string;
  /** After the answer it begins again, for ever. */
  readonly endless?: boolean;
}

/** Said when the request brings tools, whatever the question. */
export const TOOL_CALL = { name: 'get_berth', arguments: { name: 'A' } } as const;

const TOOL_TOKENS = [
  CALLS,
  '<tool_call>',
  '\n{"name":',
  `${SPACE}"get_berth",`,
  `${SPACE}"arguments":`,
  `${SPACE}{"name":`,
  // With its line break: a token of the caller's text must not be followed by anything but the answer.
  `${SPACE}"A"}}\n`,
  '</tool_call>',
  END,
];

/** The default seed; with another the model says which, so that models of one preset can be told apart. */
export const DEFAULT_SEED = 1;

export const withSeed = (sentence: string, seed: number): string =>
  seed === DEFAULT_SEED ? sentence : `${sentence} (seed ${seed})`;

/** The links of a script, its words, and the token that begins its answer. */
export function scriptLinks(script: Script): { links: Links; words: readonly string[]; first: string } {
  const answer = sentenceTokens(script.answer);
  const first = answer[0] ?? '';
  const thinking =
    script.reasoning === undefined ? [] : ['<think>', ...sentenceTokens(script.reasoning), '</think>'];
  const again = SPACE + first.toLowerCase();
  const end = script.endless === true ? [again, answer[1] ?? ''] : [END];
  const links = [
    ...linksOf([ASSISTANT, ...thinking, ...answer, ...end]),
    [PLAIN, first] as const,
    ...linksOf(TOOL_TOKENS),
  ];
  return { links, words: [...new Set(links.flat())], first };
}

/**
 * ChatML in the markers of our vocabulary. The last token of the prompt chooses the chain: `<|assistant|>` the
 * script as it stands, `<|plain|>` the answer without reasoning, `<|calls|>` a tool call.
 */
export const CHAT_TEMPLATE = `{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' -}}
{%- if message['reasoning_content'] -%}{{- '<think>' + message['reasoning_content'] + '</think>' -}}{%- endif -%}
{%- if message['content'] is string -%}{{- message['content'] -}}
{%- elif message['content'] -%}{%- for part in message['content'] -%}{%- if part['type'] == 'text' -%}{{- part['text'] -}}{%- endif -%}{%- endfor -%}
{%- endif -%}
{%- for call in message['tool_calls'] or [] -%}
{{- '<tool_call>\\n{"name": "' + call['function']['name'] + '", "arguments": ' -}}
{%- if call['function']['arguments'] is string -%}{{- call['function']['arguments'] -}}{%- else -%}{{- call['function']['arguments'] | tojson -}}{%- endif -%}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '${END}' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '${ASSISTANT}' -}}
{%- if tools and messages[-1]['role'] != 'tool' -%}{{- '${CALLS}' -}}
{%- elif enable_thinking is defined and enable_thinking == false -%}{{- '${PLAIN}' -}}
{%- endif -%}
{%- endif -%}`;
