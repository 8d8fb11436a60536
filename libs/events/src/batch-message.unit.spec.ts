import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchMessage } from './batch-message.js';

const bytes = fc.uint8Array({ maxLength: 400 }).map((a) => Buffer.from(a));
const event = fc.record({
  id: fc.uuid(),
  type: fc.string({ minLength: 1, maxLength: 60 }),
  data: bytes,
  metadata: bytes,
});

const read = (message: Buffer) => {
  const request = streamsPb.BatchAppendReq.deserializeBinary(message);
  const options = request.getOptions();
  return {
    correlationId: request.getCorrelationId()?.getString(),
    isFinal: request.getIsFinal(),
    stream: Buffer.from(options?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8'),
    any: options?.hasAny(),
    noStream: options?.hasNoStream(),
    revision: options?.hasStreamPosition() ? options.getStreamPosition() : undefined,
    deadlineMs: options?.getDeadline()?.toDate().getTime(),
    events: request.getProposedMessagesList().map((m) => ({
      id: m.getId()?.getString(),
      type: m.getMetadataMap().get('type'),
      contentType: m.getMetadataMap().get('content-type'),
      data: Buffer.from(m.getData_asU8()),
      metadata: Buffer.from(m.getCustomMetadata_asU8()),
    })),
  };
};

describe('the batch append message', () => {
  it('is read by the protocol’s own classes as it was meant', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.string({ minLength: 1 }),
        fc.array(event, { minLength: 1, maxLength: 12 }),
        fc.oneof(
          fc.constant('any' as const),
          fc.constant('no-stream' as const),
          fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
        ),
        fc.integer({ min: 0, max: 4_102_444_800_000 }),
        (correlationId, stream, events, expected, deadlineAtMs) => {
          const got = read(batchMessage(correlationId, stream, events, expected, deadlineAtMs));
          expect(got).toEqual({
            correlationId,
            isFinal: true,
            stream: Buffer.from(stream).toString('utf8'),
            any: expected === 'any',
            noStream: expected === 'no-stream',
            revision: typeof expected === 'number' ? String(expected) : undefined,
            deadlineMs: deadlineAtMs,
            events: events.map((e) => ({
              ...e,
              type: Buffer.from(e.type).toString('utf8'),
              contentType: 'application/json',
            })),
          });
        },
      ),
    );
  });

  it('takes a revision of -1 as no stream', () => {
    const one = {
      id: '0b3c9c52-8f0e-4f2e-9a55-111111111111',
      type: 'T',
      data: Buffer.alloc(1),
      metadata: Buffer.alloc(0),
    };
    expect(read(batchMessage(one.id, 's', [one], -1, 0)).noStream).toBe(true);
  });
});
