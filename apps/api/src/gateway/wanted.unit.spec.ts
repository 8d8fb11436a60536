import { expect, it } from 'vitest';
import { callId } from '#domain/ids.js';
import type { CallBody } from './call-body.js';
import type { Resolved } from './resolve.js';
import { wantedOf } from './wanted.js';

it('a prompt is sized by its bytes ÷ 4 before any history, by the median after, and by 1,000 a picture', () => {
  const sized = (promptBytes: number, pictures: number, bytesPerToken?: number): number =>
    wantedOf({ promptBytes, pictures } as CallBody, {} as Resolved, {
      callId: callId('c'),
      receivedAtMs: 0,
      group: undefined,
      bytesPerToken,
    }).promptTokens;
  expect(sized(401, 0)).toBe(101);
  expect(sized(400, 2)).toBe(2100);
  expect(sized(400, 0, 2.5)).toBe(160);
});
