import type { Llama, LlamaGrammar } from 'node-llama-cpp';
import { badRequest, RequestError } from './failure.js';
import type { ChatTool, Json, ResponseFormat, ToolChoice } from './requests.js';
import { grammarSchema } from './schema-grammar.js';

/** The library ends its grammars with line breaks that a session waits for; the end of the answer ends ours. */
const WAITING_END = ` "${'\\n'.repeat(4)}" [\\n]*`;

async function schemaText(llama: Llama, schema: Json, field: string): Promise<string> {
  const known = grammarSchema(schema, field);
  try {
    // The library infers a type from a schema that is known when it compiles; this one is checked when it runs.
    const { grammar } = await llama.createGrammarForJsonSchema(known as { readonly type: 'object' });
    return grammar.replace(WAITING_END, '');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badRequest(`The JSON schema cannot be turned into a grammar: ${why}`, field);
  }
}

async function fromText(llama: Llama, grammar: string, field: string): Promise<LlamaGrammar> {
  try {
    return await llama.createGrammar({ grammar });
  } catch {
    // The library's words are of its own parser, and quote the whole.
    throw badRequest(`"${field}" is no valid grammar.`, field);
  }
}

/** What an answer is held to; undefined when it is free. */
export async function formatGrammar(llama: Llama, format: ResponseFormat): Promise<LlamaGrammar | undefined> {
  switch (format.kind) {
    case 'text':
      return undefined;
    case 'json':
      return llama.getGrammarFor('json');
    case 'schema':
      return fromText(llama, await schemaText(llama, format.schema, format.field), format.field);
    case 'grammar':
      return fromText(llama, format.text, 'grammar');
  }
}

/**
 * A grammar of nothing but calls, in the form that the answers are read for (`<tool_call>{…}</tool_call>`), each with
 * arguments that hold the tool's schema.
 * @returns undefined when the model may choose.
 */
export async function callGrammar(
  llama: Llama,
  tools: readonly ChatTool[],
  choice: ToolChoice,
  parallel: boolean,
): Promise<LlamaGrammar | undefined> {
  if (choice === 'auto' || choice === 'none') return undefined;
  const wanted = choice === 'required' ? tools : tools.filter(({ name }) => name === choice.name);
  const calls = wanted.map(({ name, parameters }) => ({
    type: 'object',
    properties: { name: { const: name }, arguments: parameters ?? { type: 'object' } },
    additionalProperties: false,
  }));
  // Definitions are looked up at the root: a schema's own are lifted, under names of their own.
  const definitions: Record<string, unknown> = {};
  const lifted = calls.map((call, at) => liftDefinitions(call, `t${at}_`, definitions));
  const text = await schemaText(llama, { oneOf: lifted, $defs: definitions }, 'tools');
  const [first, ...rules] = text.split('\n');
  const call = (first ?? '').replace(/^root ::= /, 'call ::= ');
  const one = '"<tool_call>\\n" call "\\n</tool_call>"';
  const root = parallel ? `root ::= ${one} ("\\n" ${one})*` : `root ::= ${one}`;
  return fromText(llama, [root, call, ...rules].join('\n'), 'tools');
}

function liftDefinitions(value: unknown, prefix: string, into: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((each) => liftDefinitions(each, prefix, into));
  if (typeof value !== 'object' || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if ((key === '$defs' || key === 'definitions') && typeof member === 'object' && member !== null) {
      for (const [name, schema] of Object.entries(member as Json))
        into[prefix + name] = liftDefinitions(schema, prefix, into);
    } else if (key === '$ref' && typeof member === 'string') {
      if (member === '#')
        throw new RequestError(
          400,
          'invalid_request_error',
          'A tool refers to its own root; name the part in "$defs".',
          { param: 'tools' },
        );
      out[key] = member.replace(/^#\/(?:\$defs|definitions)\//, `#/$defs/${prefix}`);
    } else out[key] = liftDefinitions(member, prefix, into);
  }
  return out;
}
