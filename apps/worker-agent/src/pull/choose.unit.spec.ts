import { describe, expect, test } from 'vitest';
import { choicesIn, choose } from './choose.js';
import { lines } from './progress.js';
import { parseSource } from './source.js';

const file = (path: string, bytes = 100) => ({ path, bytes });

describe('choices', () => {
  test('shards are one choice, projectors and other files none, best first', () => {
    const files = ['README.md', 'm-Q4_K_M.gguf', 'mmproj-F16.gguf', 'F16/m-F16-00002-of-00002.gguf'];
    const choices = choicesIn([...files, 'F16/m-F16-00001-of-00002.gguf', 'm-Q8_0.gguf'].map((p) => file(p)));
    expect(choices.map((c) => [c.label, c.files.length, c.bytes])).toEqual([
      ['F16', 2, 200],
      ['Q8_0', 1, 100],
      ['Q4_K_M', 1, 100],
    ]);
    expect(choices[0]?.files[0]?.path).toBe('F16/m-F16-00001-of-00002.gguf');
  });

  test('a label that two models have is told apart by file', () => {
    const files = [file('a-Q4_K_M.gguf'), file('b-Q4_K_M.gguf')];
    expect(() => choose('o/r', files)).toThrow('o/r:a-Q4_K_M.gguf');
    expect(() => choose('o/r', files, 'Q4_K_M')).toThrow('more than one');
    expect(choose('o/r', files, 'b-Q4_K_M.gguf').files[0]?.path).toBe('b-Q4_K_M.gguf');
  });

  test('a repository without a GGUF says where to look', () => {
    expect(() => choose('o/r', [file('model.safetensors')])).toThrow('-GGUF');
  });
});

describe('a source', () => {
  test.each([
    ['o/r', { owner: 'o', repo: 'r' }],
    ['o/r:Q4_K_M', { owner: 'o', repo: 'r', pick: 'Q4_K_M' }],
    ['o/r:sub/file.gguf', { owner: 'o', repo: 'r', pick: 'sub/file.gguf' }],
    ['https://huggingface.co/o/r', { owner: 'o', repo: 'r' }],
    ['hf.co/o/r:q8_0', { owner: 'o', repo: 'r', pick: 'q8_0' }],
  ])('%s is read', (text, source) => {
    expect(parseSource(text)).toEqual(source);
  });

  test.each(['', 'o', 'o/', '/r', '../r', 'o/r/x', 'o/..', 'o/r x', '.o/r'])('"%s" is refused', (text) => {
    expect(() => parseSource(text)).toThrow('OWNER/REPO');
  });
});

test('without a terminal, progress is a line at every tenth and no more', () => {
  const printed: string[] = [];
  const progress = lines(
    (line) => printed.push(line),
    () => 0,
  );
  progress.start(1000);
  for (let bytes = 0; bytes <= 1000; bytes++) progress.at(bytes, 'm.gguf');
  progress.stop();
  expect(printed).toHaveLength(11);
  expect(printed[0]).toBe('0 %: 0 B of 1000 B (m.gguf)');
  expect(printed[10]).toBe('100 %: 1000 B of 1000 B (m.gguf)');
});
