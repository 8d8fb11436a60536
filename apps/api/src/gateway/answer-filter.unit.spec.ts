import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ok } from '#domain/result.js';
import { MIB } from '#domain/units.js';
import { type AnswerFilter, FilteredClient, OPENAI_ERRORS } from './answer-filter.js';

function client(optional: boolean) {
  const wrote: (Buffer | string)[] = [];
  const heads: number[] = [];
  const res = {
    on: () => undefined,
    writeHead: (status: number) => void heads.push(status),
    write: (chunk: Buffer) => wrote.push(chunk) > 0,
    end: (last?: Buffer | string) => {
      if (last !== undefined) wrote.push(last);
    },
  };
  const filter: AnswerFilter = {
    errors: OPENAI_ERRORS,
    passing: false,
    ...(optional ? { optional: true as const } : {}),
    frames: () => undefined,
    whole: () => ok(Buffer.from('told')),
  };
  return { wrote, heads, client: new FilteredClient(res as unknown as ServerResponse, filter, 'id') };
}
const CHUNK = Buffer.alloc(4 * MIB);

describe('a whole answer', () => {
  it('is kept and told at its end', () => {
    const { wrote, heads, client: one } = client(false);
    one.head(200, []);
    one.write(CHUNK);
    expect([heads, wrote]).toEqual([[], []]);
    expect(one.end()).toBeUndefined();
    expect([heads, wrote]).toEqual([[200], ['told']]);
  });

  it('goes on as it is once it is too large to be kept, where it can do without its filter', () => {
    const { wrote, heads, client: one } = client(true);
    one.head(200, []);
    for (let n = 0; n < 2; n += 1) one.write(CHUNK);
    expect(heads).toEqual([]);
    for (let n = 0; n < 2; n += 1) one.write(CHUNK);
    expect(heads).toEqual([200]);
    expect(one.end()).toBeUndefined();
    // By identity: looked at byte by byte, megabytes take minutes.
    expect(wrote.map((chunk) => chunk === CHUNK)).toEqual([true, true, true, true]);
  });

  it('is refused with its size where it must be translated and is too large for that, and nothing of it is sent', () => {
    const { wrote, heads, client: one } = client(false);
    one.head(200, []);
    for (let n = 0; n < 40; n += 1) one.write(CHUNK);
    const error = one.end();
    expect(error).toMatchObject({ code: 'engine_failed' });
    expect(error?.message).toContain('160');
    expect([heads, wrote]).toEqual([[], []]);
  });
});
