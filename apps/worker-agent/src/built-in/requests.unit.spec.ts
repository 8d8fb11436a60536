import { describe, expect, it } from 'vitest';
import { RequestError } from './failure.js';
import { readChat, readCompletion, readEmbedding, readRerank } from './requests.js';

const messages = [{ role: 'user', content: 'hi' }];
const refused = (read: () => unknown) => {
  try {
    read();
  } catch (error) {
    if (error instanceof RequestError) return error.body().error;
  }
  throw new Error('It was not refused.');
};

describe('what a request says', () => {
  it('prefers max_completion_tokens, and takes a negative limit for none', () => {
    expect(readChat({ messages, max_tokens: 5, max_completion_tokens: 7 }).maxTokens).toBe(7);
    expect(readChat({ messages, max_tokens: -1 }).maxTokens).toBeUndefined();
  });

  it('takes the defaults of llama-server', () => {
    expect(readChat({ messages })).toMatchObject({ temperature: 0.8, topP: 0.95, topK: 40, minP: 0.05 });
  });

  it('gives the arguments of earlier tool calls to the template as an object', () => {
    const call = (text: string) => ({ id: '1', type: 'function', function: { name: 'f', arguments: text } });
    const chat = readChat({
      messages: [{ role: 'assistant', content: null, tool_calls: [call('{"a":1}'), call('{broken')] }],
    });
    expect(chat.messages[0]).toMatchObject({
      content: '',
      tool_calls: [{ function: { arguments: { a: 1 } } }, { function: { arguments: '{broken' } }],
    });
  });

  it('leaves the tools out when the caller wants none called', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    expect(readChat({ messages, tools }).tools).toEqual(tools);
    expect(readChat({ messages, tools, tool_choice: 'none' }).tools).toEqual([]);
  });

  it('names the field at fault', () => {
    expect(refused(() => readChat({ messages, top_p: 2 }))).toMatchObject({ param: 'top_p', code: 400 });
    expect(refused(() => readChat({ messages, seed: 1.5 }))).toMatchObject({ param: 'seed' });
    expect(refused(() => readChat({ messages, stop: [1] }))).toMatchObject({ param: 'stop' });
    expect(refused(() => readCompletion({ prompt: [] }))).toMatchObject({ param: 'prompt' });
    expect(refused(() => readEmbedding({ input: 'x', dimensions: 3 }, 64))).toMatchObject({
      param: 'dimensions',
    });
    expect(refused(() => readRerank({ query: 'q', documents: [] }))).toMatchObject({ param: 'documents' });
  });

  it('reads prompts and inputs in all their forms', () => {
    expect(readCompletion({ prompt: '' }).prompts).toEqual(['']);
    expect(readCompletion({ prompt: ['a', [1, 2]] }).prompts).toEqual(['a', [1, 2]]);
    expect(readEmbedding({ input: [1, 2, 3] }, 64).inputs).toEqual([[1, 2, 3]]);
    expect(readRerank({ query: 'q', documents: ['a', { text: 'b' }] }).documents).toEqual(['a', 'b']);
  });
});
