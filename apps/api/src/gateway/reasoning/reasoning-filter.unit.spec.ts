import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dataOf, frames } from '../sse-frames.js';
import { ReasoningFilter } from './reasoning-filter.js';

type Delta = Record<string, unknown>;

const frame = (delta: Delta, finish: string | null = null, index = 0): string =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [{ index, delta, finish_reason: finish }] })}\n\n`;
const DONE = 'data: [DONE]\n\n';

/** What a caller reads: the parts of each choice, and its finish reasons. */
function read(text: string) {
  const choices: { reasoning: string; content: string; finish: string[] }[] = [];
  for (const each of frames(Buffer.from(text))) {
    const data = dataOf(each);
    if (data === undefined || data === '[DONE]') continue;
    const chunk = JSON.parse(data) as {
      choices: { index: number; delta: Delta; finish_reason: string | null }[];
    };
    for (const { index, delta, finish_reason: finish } of chunk.choices) {
      const choice = (choices[index] ??= { reasoning: '', content: '', finish: [] });
      choice.reasoning += (delta['reasoning_content'] as string | undefined) ?? '';
      choice.content += (delta['content'] as string | null | undefined) ?? '';
      if (finish !== null) choice.finish.push(finish);
    }
  }
  return choices;
}

function filtered(parts: readonly string[], choices = 1): string {
  const filter = new ReasoningFilter();
  filter.expect(choices);
  return parts.map((part) => filter.frames(Buffer.from(part))?.toString() ?? '').join('');
}

const whole = (text: string): string => {
  const answer = new ReasoningFilter().whole(Buffer.from(text));
  return answer.ok ? answer.value.toString() : '';
};

describe('taking reasoning out of chat answers', () => {
  it('parts a stream whose tags are cut anywhere, and ends it once', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1 }), (cuts) => {
        const text = '<think>Tide table.</think>\n\nHigh water at noon.';
        const parts = [frame({ role: 'assistant', content: null })];
        let at = 0;
        for (let i = 0; at < text.length; i += 1) {
          const length = cuts[i % cuts.length] ?? 1;
          parts.push(frame({ content: text.slice(at, at + length) }));
          at += length;
        }
        const out = filtered([...parts, frame({}, 'stop'), DONE]);
        expect(read(out)).toEqual([
          { reasoning: 'Tide table.', content: 'High water at noon.', finish: ['stop'] },
        ]);
        expect(out.match(/\[DONE\]/g)).toHaveLength(1);
        expect(out).not.toMatch(/think>/);
      }),
    );
  });

  it('flushes what it held back before the end', () => {
    const out = filtered([frame({ content: 'a <' }), frame({ content: 'b' }), frame({}, 'stop'), DONE]);
    expect(read(out)[0]).toMatchObject({ content: 'a <b', finish: ['stop'] });
    const cut = filtered([frame({ content: '<thi' }), frame({}, 'length'), DONE]);
    expect(read(cut)[0]).toMatchObject({ content: '<thi', finish: ['length'] });
    const open = filtered([frame({ content: '<think>a</th' }), DONE]);
    expect(read(open)[0]).toMatchObject({ reasoning: 'a</th', content: '' });
  });

  it('leaves the bytes of an answer that does not open with a tag as they are', () => {
    const parts = [
      frame({ role: 'assistant', content: null }),
      frame({ content: 'No <think>' }),
      frame({ content: ' here' }),
      frame({}, 'stop'),
      DONE,
    ];
    expect(filtered(parts)).toBe(parts.join(''));
    const filter = new ReasoningFilter();
    filter.frames(Buffer.from(parts.slice(0, 2).join('')));
    expect(filter.passing).toBe(true);
  });

  it('leaves an engine alone that parts reasoning itself', () => {
    const parts = [
      frame({ reasoning_content: 'why' }),
      frame({ content: '<think>said' }),
      frame({}, 'stop'),
      DONE,
    ];
    expect(filtered(parts)).toBe(parts.join(''));
    const text = '{"choices":[{"message":{"reasoning_content":"why","content":"<think>said"}}]}';
    expect(JSON.parse(whole(text))).toEqual(JSON.parse(text));
  });

  it('parts every choice of several', () => {
    const out = filtered(
      [
        frame({ content: '<think>a' }, null, 0),
        frame({ content: 'plain' }, null, 1),
        frame({ content: '</think>A' }, null, 0),
        frame({}, 'stop', 0),
        frame({}, 'stop', 1),
        DONE,
      ],
      2,
    );
    expect(read(out)).toEqual([
      { reasoning: 'a', content: 'A', finish: ['stop'] },
      { reasoning: '', content: 'plain', finish: ['stop'] },
    ]);
  });

  it('tells a call only after what was held back', () => {
    const calls = [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const out = filtered([frame({ content: '<think>a</th' }), frame({ tool_calls: calls }), DONE]);
    expect(read(out)[0]?.reasoning).toBe('a</th');
    expect(out.indexOf('tool_calls')).toBeGreaterThan(out.indexOf('</th'));
  });

  it.each([
    [
      '{"choices":[{"message":{"role":"assistant","content":"<think>a</think>b"},"finish_reason":"stop"}],"usage":{}}',
      'a',
      'b',
    ],
    ['{ "choices": [ {"message": { "content" : "\\n\\u003cthinking\\u003ea</thinking> b" } } ] }', 'a', 'b'],
  ])('parts a whole answer', (text, reasoning, content) => {
    const { choices } = JSON.parse(whole(text)) as { choices: { message: object }[] };
    expect(choices[0]!.message).toMatchObject({ reasoning_content: reasoning, content });
  });

  it('gives a whole answer without tags on byte for byte', () => {
    const text = '{ "choices":[{"message":{"content":"a <think>b"}}] , "x":1e2}';
    expect(whole(text)).toBe(text);
  });
});
