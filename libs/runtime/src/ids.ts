import { randomFillSync } from 'node:crypto';
import { v5 } from 'uuid';

/** Namespace of ids derived by Berth. Never change it: retried writes find their first try by it. */
const NAMESPACE = '6e1c0a3f-7f7c-5d5e-9d0a-3c9b0b7c2a51';

const RANDOM = Buffer.allocUnsafeSlow(4096);
let used = RANDOM.length;
function random24(): number {
  if (used + 3 > RANDOM.length) {
    randomFillSync(RANDOM);
    used = 0;
  }
  used += 3;
  return RANDOM.readUIntBE(used - 3, 3);
}

const HEX = Buffer.from('0123456789abcdef');
/** The id under way: what stays from one to the next (the time, the dashes) is written once. */
const TEXT = Buffer.from('00000000-0000-7000-8000-000000000000');
function writeHex(value: number, at: number, digits: number): void {
  let rest = value;
  for (let i = at + digits - 1; i >= at; i -= 1) {
    TEXT[i] = HEX[rest & 15] ?? 0;
    rest >>>= 4;
  }
}

const COUNT_BITS = 26;
let lastMs = 0;
let count = 0;

/** Another millisecond: its count starts at random, with as much room again above. */
function begin(ms: number): void {
  lastMs = ms;
  count = random24();
  const high = Math.floor(ms / 2 ** 16);
  writeHex(high, 0, 8);
  writeHex(ms - high * 2 ** 16, 9, 4);
}

/**
 * A new id, ordered by time, also among those of one millisecond: a UUID of version 7 (RFC 9562) with 48 bits of time, 26
 * of a count and 48 at random. Each call takes several, and a general library is slow at it.
 */
export function newId(): string {
  const now = Date.now();
  if (now > lastMs) begin(now);
  else if ((count += 1) === 2 ** COUNT_BITS) begin(lastMs + 1);
  writeHex(count >>> 14, 15, 3);
  // Two bits of the variant stand before the rest of the count.
  writeHex(0x8000 | (count & 0x3fff), 19, 4);
  writeHex(random24(), 24, 6);
  writeHex(random24(), 30, 6);
  return TEXT.toString('latin1');
}

/** The same parts give the same id: for every write that a retry could make twice. */
export const derivedId = (...parts: readonly string[]): string => v5(parts.join(' '), NAMESPACE);
