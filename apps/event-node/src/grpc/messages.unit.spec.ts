import { expect, test } from 'vitest';
import fc from 'fast-check';
import { CompressedMessage, MessageBatch, MessageReader, MessageTooLarge } from './messages.js';

const messages = fc.array(fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)));

function inOnePiece(all: readonly Buffer[]): Buffer {
  const batch = new MessageBatch();
  for (const message of all) batch.add(message);
  return batch.take();
}

test('messages come out as they went in, wherever the bytes between are cut', () => {
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1 }), (all, cuts) => {
      const bytes = inOnePiece(all);
      const reader = new MessageReader(1000);
      const seen: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const end = at + (cuts[i % cuts.length] ?? 1);
        reader.take(bytes.subarray(at, end), (message) => seen.push(Buffer.from(message)));
        at = end;
      }
      expect(seen).toEqual(all);
    }),
  );
});

test('a batch is empty once it was taken', () => {
  const batch = new MessageBatch();
  batch.add(Buffer.from('a'));
  expect(batch.bytes).toBe(6);
  batch.take();
  expect(batch.bytes).toBe(0);
  expect(batch.take()).toHaveLength(0);
});

test('a message above the limit is refused as soon as its head is there, and a compressed one too', () => {
  const head = Buffer.from([0, 0, 0, 4, 0]);
  expect(() => new MessageReader(1000).take(head, () => undefined)).toThrow(MessageTooLarge);
  expect(() => new MessageReader(1000).take(Buffer.from([1, 0, 0, 0, 0]), () => undefined)).toThrow(
    CompressedMessage,
  );
});
