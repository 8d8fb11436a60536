import { expect, test } from 'vitest';
import fc from 'fast-check';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { NodeError } from '../errors.js';
import { decodeBatchChunk, proposed } from './batch-append.js';
import { eventFrame, withStructuredId } from './read-frames.js';
import {
  encodeRecord,
  recordBody,
  recordCreatedMs,
  recordId,
  recordStream,
  recordType,
  streamField,
  TOMBSTONE_REVISION,
} from './record.js';
import { putVarint, varintSize, WireReader } from './wire.js';

const bytes = fc.uint8Array({ maxLength: 400 });
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 });
const safe = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const anEvent = fc.record({
  id: fc.uuid(),
  type: text,
  json: fc.boolean(),
  data: bytes,
  customMetadata: bytes,
});

test('numbers are written as protobuf writes them, up to 2^53', () => {
  fc.assert(
    fc.property(safe, (value) => {
      const out = Buffer.alloc(10);
      const end = putVarint(out, 0, value);
      expect(end).toBe(varintSize(value));
      expect(new WireReader(out, 0, end).varint()).toBe(value);
      expect(BigInt(value)).toBe(
        out.subarray(0, end).reduceRight((sum, byte) => (sum << 7n) | BigInt(byte & 127), 0n),
      );
    }),
  );
});

test('a record is what the protocol’s own classes read, and its parts are found by offset', () => {
  fc.assert(
    fc.property(
      anEvent,
      text,
      safe,
      safe,
      fc.integer({ min: 1e12, max: 9e12 }),
      (e, stream, revision, position, ms) => {
        const record = encodeRecord(e, streamField(stream), revision, position, ms);
        expect(recordId(record)).toBe(e.id);
        expect(recordStream(record)).toBe(stream);
        expect(recordType(record)).toBe(e.type);
        expect(recordCreatedMs(record)).toBe(ms);
        expect(recordBody(record)).toMatchObject({ revision, position });
        const read = streamsPb.ReadResp.deserializeBinary(eventFrame(record, position)).getEvent();
        const recorded = read?.getEvent();
        expect(read?.getCommitPosition()).toBe(String(position));
        expect(recorded?.getId()?.getString()).toBe(e.id);
        expect(Buffer.from(recorded?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString()).toBe(
          stream,
        );
        expect(recorded?.getStreamRevision()).toBe(String(revision));
        expect(recorded?.getPreparePosition()).toBe(String(position));
        expect(recorded?.getMetadataMap().get('type')).toBe(e.type);
        expect(recorded?.getMetadataMap().get('created')).toBe(`${ms}0000`);
        expect(recorded?.getMetadataMap().get('content-type')).toBe(
          e.json ? 'application/json' : 'application/octet-stream',
        );
        expect(Buffer.from(recorded?.getData_asU8() ?? [])).toEqual(Buffer.from(e.data));
        expect(Buffer.from(recorded?.getCustomMetadata_asU8() ?? [])).toEqual(Buffer.from(e.customMetadata));
        const structured = streamsPb.ReadResp.ReadEvent.RecordedEvent.deserializeBinary(
          withStructuredId(record, e.id),
        );
        expect(structured.getId()?.hasStructured()).toBe(true);
        expect(structured.getStreamRevision()).toBe(String(revision));
      },
    ),
    { numRuns: 200 },
  );
});

test('a tombstone has the greatest revision there is', () => {
  const event = { id: '00000000-0000-4000-8000-000000000000', type: '$streamDeleted', json: true };
  const record = encodeRecord(
    { ...event, data: Buffer.from('{}'), customMetadata: Buffer.alloc(0) },
    streamField('s'),
    TOMBSTONE_REVISION,
    5,
    1e12,
  );
  const read = streamsPb.ReadResp.ReadEvent.RecordedEvent.deserializeBinary(record);
  expect(read.getStreamRevision()).toBe('9223372036854775807');
  expect(recordBody(record).revision).toBe(TOMBSTONE_REVISION);
});

test('a record that is cut short says so, wherever it is cut', () => {
  const whole = encodeRecord(
    {
      id: '00000000-0000-4000-8000-000000000000',
      type: 'T',
      json: true,
      data: Buffer.from('{"a":1}'),
      customMetadata: Buffer.from('{}'),
    },
    streamField('stream'),
    3,
    99,
    1e12,
  );
  for (let length = 1; length < whole.length; length++) {
    const cut = whole.subarray(0, length);
    let body: ReturnType<typeof recordBody> | undefined;
    try {
      body = recordBody(cut);
    } catch (error) {
      expect(error).toBeInstanceOf(RangeError);
    }
    // A cut between two fields reads, and then lacks the data at its end.
    if (body) expect(body.data).toHaveLength(0);
  }
});

test('an append is read as the protocol’s own classes write it', () => {
  fc.assert(
    fc.property(
      fc.array(anEvent, { maxLength: 5 }),
      text,
      fc.oneof(safe, fc.constantFrom('any' as const, 'no_stream' as const, 'stream_exists' as const)),
      fc.boolean(),
      (events, stream, expected, isFinal) => {
        const request = new streamsPb.BatchAppendReq();
        const correlation = new sharedPb.UUID();
        correlation.setString('c0ffee00-0000-4000-8000-000000000000');
        request.setCorrelationId(correlation);
        request.setIsFinal(isFinal);
        const options = new streamsPb.BatchAppendReq.Options();
        const identifier = new sharedPb.StreamIdentifier();
        identifier.setStreamName(Buffer.from(stream));
        options.setStreamIdentifier(identifier);
        if (typeof expected === 'number') options.setStreamPosition(String(expected));
        request.setOptions(options);
        const empty = new sharedPb.Empty() as unknown as Parameters<typeof options.setAny>[0];
        if (expected === 'any') options.setAny(empty);
        if (expected === 'no_stream') options.setNoStream(empty);
        if (expected === 'stream_exists') options.setStreamExists(empty);
        for (const e of events) {
          const message = new streamsPb.BatchAppendReq.ProposedMessage();
          const id = new sharedPb.UUID();
          id.setString(e.id);
          message.setId(id);
          message.getMetadataMap().set('type', e.type);
          message
            .getMetadataMap()
            .set('content-type', e.json ? 'application/json' : 'application/octet-stream');
          message.setData(e.data);
          message.setCustomMetadata(e.customMetadata);
          request.addProposedMessages(message);
        }
        const chunk = decodeBatchChunk(Buffer.from(request.serializeBinary()));
        expect(chunk.isFinal).toBe(isFinal);
        expect(chunk.options).toMatchObject({ stream, expected });
        expect(sharedPb.UUID.deserializeBinary(chunk.correlation).getString()).toBe(
          'c0ffee00-0000-4000-8000-000000000000',
        );
        expect(
          chunk.events.map((e) => ({ ...e, data: [...e.data], customMetadata: [...e.customMetadata] })),
        ).toEqual(events.map((e) => ({ ...e, data: [...e.data], customMetadata: [...e.customMetadata] })));
      },
    ),
    { numRuns: 200 },
  );
});

test('an event without a type or a content type is refused with what it needs', () => {
  const nothing = Buffer.alloc(0);
  const id = '00000000-0000-4000-8000-000000000000';
  for (const fault of [
    proposed(id, undefined, 'application/json', nothing, nothing),
    proposed(id, 'T', '', nothing, nothing),
  ]) {
    expect(fault).toBeInstanceOf(NodeError);
    expect((fault as NodeError).refusal).toMatchObject({
      code: 'missing-metadata-property',
      required: ['type', 'content-type'],
    });
  }
});
