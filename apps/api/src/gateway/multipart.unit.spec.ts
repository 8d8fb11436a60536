import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundaryOf, formParts } from './multipart.js';

const form = (parts: readonly (readonly [string, Buffer])[], boundary = 'b'): Buffer =>
  Buffer.concat([
    ...parts.flatMap(([head, value]) => [
      Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`),
      value,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
const read = (bytes: Buffer) => {
  const parts = formParts(bytes, 'b');
  if (!parts.ok) throw new Error(parts.error.message);
  return parts.value.map(({ name, valueStart, valueEnd }) => [name, bytes.subarray(valueStart, valueEnd)]);
};

describe('a form', () => {
  it('has its parts found wherever they are, whatever bytes a file has', () => {
    const file = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('file', 'model', 'x'), file), { maxLength: 5 }),
        (parts) => {
          fc.pre(parts.every(([, value]) => !value.includes('--b')));
          const heads = parts.map(
            ([name, value]) => [`filename="name=y.wav"; name="${name}"`, value] as const,
          );
          const bytes = form(heads);
          if (parts.length > 0) expect(read(bytes)).toEqual(parts);
        },
      ),
    );
    expect(read(form([['name=plain', Buffer.from('v')]]))).toEqual([['plain', Buffer.from('v')]]);
  });

  it.each([
    ['no boundary', 'nothing'],
    ['a part without end', '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nx'],
    ['a head without end', '--b\r\ncontent-disposition: form-data'],
    ['a part without a name', '--b\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--'],
  ])('with %s is malformed', (_, text) => {
    expect(formParts(Buffer.from(text), 'b')).toMatchObject({
      ok: false,
      error: { code: 'invalid_request' },
    });
  });

  it('says by its content-type what parts it', () => {
    expect(boundaryOf('multipart/form-data; boundary=abc')).toEqual({ ok: true, value: 'abc' });
    expect(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b"')).toEqual({
      ok: true,
      value: 'a b',
    });
    for (const type of [undefined, 'application/json', 'multipart/form-data'])
      expect(boundaryOf(type)).toMatchObject({ ok: false, error: { param: 'content-type' } });
  });
});
