import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Sha256 } from './sha256.js';

describe('a hash that can be put aside', () => {
  it('is that of the platform, wherever it is stopped and taken up again from its written state', () => {
    const data = fc.uint8Array({ maxLength: 1000 });
    fc.assert(
      fc.property(data, fc.array(fc.nat(15), { maxLength: 4 }), (bytes, stops) => {
        let hash = new Sha256();
        let at = 0;
        for (const blocks of stops) {
          const end = Math.min(at + blocks * 64, bytes.length - (bytes.length % 64));
          hash.update(bytes.subarray(at, end));
          at = end;
          hash = new Sha256(JSON.parse(JSON.stringify(hash.state)) as Sha256['state']);
        }
        expect(hash.digest(bytes.subarray(at))).toBe(createHash('sha256').update(bytes).digest('hex'));
      }),
    );
  });

  it('counts the bits of more than 512 MiB', () => {
    // The state after 2^29 + 64 bytes that are not read: only the length at the end differs from that of a short one.
    const words = [1, 2, 3, 4, 5, 6, 7, 8];
    const long = new Sha256({ words, bytes: 0x2000_0000 + 64 }).digest();
    const short = new Sha256({ words, bytes: 64 }).digest();
    expect(long).not.toBe(short);
  });

  it('refuses what is no whole number of blocks', () => {
    expect(() => new Sha256().update(new Uint8Array(63))).toThrow(RangeError);
  });
});
