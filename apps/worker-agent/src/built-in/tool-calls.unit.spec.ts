import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Piece, ToolCallText } from './tool-calls.js';

function read(pieces: readonly string[]): { text: string; calls: { name: string; arguments: string }[] } {
  const reader = new ToolCallText();
  const out: Piece[] = pieces.flatMap((piece) => [...reader.push(piece)]);
  out.push(...reader.flush());
  return {
    text: out.map((piece) => (piece.kind === 'text' ? piece.text : '')).join(''),
    calls: out.flatMap((piece) =>
      piece.kind === 'call' ? [{ name: piece.call.name, arguments: piece.call.arguments }] : [],
    ),
  };
}

describe('tool calls in a text', () => {
  const text =
    'I look.<tool_call>\n{"name": "f", "arguments": {"a": "<b>"}}\n</tool_call> and <tool_call>{"name":"g"}</tool_call>.';

  it('are taken out wherever the pieces are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 20 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), text.length];
        expect(read(at.slice(1).map((end, i) => text.slice(at[i], end)))).toEqual({
          text: 'I look. and .',
          calls: [
            { name: 'f', arguments: '{"a":"<b>"}' },
            { name: 'g', arguments: '{}' },
          ],
        });
      }),
    );
  });

  it.each([
    'no call at all < tool_call>',
    '<tool_call>not JSON</tool_call>',
    '<tool_call>{"no": "name"}</tool_call>',
    '<tool_call>{"name": "cut off", "argu',
    'it ends with <tool_',
  ])('leave %j as it is', (plain) => {
    expect(read(plain.split(/(?=)/))).toEqual({ text: plain, calls: [] });
  });
});
