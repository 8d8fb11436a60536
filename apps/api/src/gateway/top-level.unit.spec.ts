import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { edited, removal, topLevel, valueOf } from './top-level.js';

const scan = (text: string) => {
  const bytes = Buffer.from(text);
  const scanned = topLevel(bytes);
  if (!scanned.ok) throw new Error(scanned.error);
  return { bytes, top: scanned.value };
};

describe('the scanner of top-level keys', () => {
  it('finds the keys and values of any JSON object, however it is spaced', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(0, 1, '\t'),
        (object, indent) => {
          // JSON reorders nothing but `__proto__`, which a dictionary cannot carry through JSON.parse as its own key.
          const text = JSON.stringify(object, null, indent);
          const { bytes, top } = scan(text);
          const found = Object.fromEntries(top.entries.map((entry) => [entry.key, valueOf(bytes, entry)]));
          expect(JSON.stringify(found)).toBe(JSON.stringify(JSON.parse(text)));
          expect(bytes[top.close]).toBe('}'.charCodeAt(0));
        },
      ),
    );
  });

  it('takes any entry out and leaves valid JSON', () => {
    const objects = fc.dictionary(fc.stringMatching(/^[a-z"\\]{1,8}$/), fc.jsonValue(), { minKeys: 1 });
    fc.assert(
      fc.property(objects, fc.nat(), (object, pick) => {
        const { bytes, top } = scan(JSON.stringify(object, null, 1));
        const index = pick % top.entries.length;
        const without = JSON.parse(Buffer.concat(edited(bytes, [removal(top, index)])).toString()) as object;
        const { [top.entries[index]!.key]: _gone, ...rest } = object;
        expect(JSON.stringify(without)).toBe(JSON.stringify(JSON.parse(JSON.stringify(rest))));
      }),
    );
  });

  it('never throws and never hangs, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.string(), (bytes, text) => {
        topLevel(Buffer.from(bytes));
        topLevel(Buffer.from(`{${text}`));
      }),
    );
  });

  it('tells both of two equal keys', () => {
    expect(scan('{"model":"a","x":[{"model":"no"}],"model":"b"}').top.entries.map((e) => e.key)).toEqual([
      'model',
      'x',
      'model',
    ]);
  });

  it.each([
    ['', 'empty'],
    ['[1]', 'not a JSON object'],
    ['{"a":1', 'the body ends'],
    ['{"a" 1}', '":" after the key "a"'],
    ['{"a":}', 'a value for "a"'],
    ['{"a":"x}', 'ends inside the value of "a"'],
    ['{"a":[1,{"b":2}', 'ends inside the value of "a"'],
    ['{"a":1}x', 'text after the JSON object'],
    ['{a:1}', 'a key in double quotes'],
  ])('says what is wrong with %j', (text, words) => {
    const scanned = topLevel(Buffer.from(text));
    expect(scanned.ok ? '' : scanned.error).toContain(words);
  });
});
