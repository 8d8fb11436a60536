import { expect, it } from 'vitest';
import { countAnswer } from './usage.js';

const usage = { prompt_tokens: 7, completion_tokens: 3 };
const timings = { prompt_n: 5, cache_n: 2, predicted_n: 3, prompt_ms: 11, predicted_ms: 13 };
const choices = [{ message: { content: 'what "usage": {"prompt_tokens": 99} means, "timings" too' } }];
const counted = (answer: unknown) => countAnswer(Buffer.from(JSON.stringify(answer, null, 1)));

it('reads what an engine counted, wherever in the answer it stands', () => {
  const both = { tokens: { prompt: 7, cached: 2, output: 3 }, timings: { promptMs: 11, decodeMs: 13 } };
  expect(counted({ choices, usage, timings })).toEqual(both);
  expect(counted({ timings, choices, usage, model: 'a' })).toEqual(both);
  expect(counted({ usage, choices })).toEqual({ tokens: { prompt: 7, output: 3 }, timings: {} });
});

it('takes nothing for a count that stands deeper, or in a text', () => {
  const inner = [{ index: 0, usage: { prompt_tokens: 99 }, timings: { prompt_n: 99 } }];
  expect(counted({ choices })).toEqual({ tokens: {}, timings: {} });
  expect(counted({ choices: inner })).toEqual({ tokens: {}, timings: {} });
  expect(counted({ choices: inner, usage })).toEqual({ tokens: { prompt: 7, output: 3 }, timings: {} });
  expect(countAnswer(Buffer.from('{"usage": {"prompt_tokens": 7'))).toEqual({ tokens: {}, timings: {} });
});
