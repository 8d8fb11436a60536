import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { convertGrpcEvent } from '@eventstore/db-client/dist/utils/convertGrpcEvent.js';
import { EventMessage, readMessage } from './read-message.js';

interface Sample {
  readonly id: string;
  readonly stream: string;
  readonly type: string;
  readonly revision: number;
  readonly position: number;
  readonly createdMs: number;
  readonly data: object;
  readonly metadata: object | undefined;
}

const samples = fc.record<Sample>({
  id: fc.uuid(),
  stream: fc.string({ unit: 'grapheme', minLength: 1 }),
  type: fc.string({ unit: 'grapheme', minLength: 1 }),
  revision: fc.maxSafeNat(),
  position: fc.maxSafeNat(),
  createdMs: fc.integer({ min: 0, max: 4e12 }),
  data: fc.object(),
  metadata: fc.option(fc.object(), { nil: undefined }),
});

function recorded(sample: Sample): streamsPb.ReadResp.ReadEvent.RecordedEvent {
  const id = new sharedPb.UUID();
  id.setString(sample.id);
  const stream = new sharedPb.StreamIdentifier();
  stream.setStreamName(Buffer.from(sample.stream));
  const record = new streamsPb.ReadResp.ReadEvent.RecordedEvent();
  record.setId(id);
  record.setStreamIdentifier(stream);
  record.setStreamRevision(String(sample.revision));
  record.setCommitPosition(String(sample.position));
  record.setPreparePosition(String(sample.position));
  record.getMetadataMap().set('type', sample.type);
  record.getMetadataMap().set('content-type', 'application/json');
  record.getMetadataMap().set('created', `${sample.createdMs}0000`);
  record.setData(Buffer.from(JSON.stringify(sample.data)));
  if (sample.metadata) record.setCustomMetadata(Buffer.from(JSON.stringify(sample.metadata)));
  return record;
}

function response(sample: Sample, link?: Sample): Buffer {
  const event = new streamsPb.ReadResp.ReadEvent();
  event.setEvent(recorded(sample));
  if (link) event.setLink(recorded(link));
  event.setCommitPosition(String(sample.position));
  const message = new streamsPb.ReadResp();
  message.setEvent(event);
  return Buffer.from(message.serializeBinary());
}

/** What the client makes of a message, whoever decoded it. */
const seen = (message: streamsPb.ReadResp | EventMessage) =>
  convertGrpcEvent((message as streamsPb.ReadResp).getEvent() as streamsPb.ReadResp.ReadEvent);

describe('a read’s message', () => {
  test('becomes the same event as through the protocol’s own classes', () => {
    fc.assert(
      fc.property(samples, (sample) => {
        const bytes = response(sample);
        const ours = readMessage(bytes);
        expect(ours).toBeInstanceOf(EventMessage);
        expect(seen(ours)).toEqual(seen(streamsPb.ReadResp.deserializeBinary(bytes)));
      }),
    );
  });

  test('that holds a link, or no event, goes to the protocol’s own classes', () => {
    fc.assert(
      fc.property(samples, samples, (sample, link) => {
        const ours = readMessage(response(sample, link));
        expect(ours).toBeInstanceOf(streamsPb.ReadResp);
        expect(seen(ours).link?.id).toBe(link.id);
      }),
    );
    const message = new streamsPb.ReadResp();
    message.setCaughtUp(new streamsPb.ReadResp.CaughtUp());
    expect(readMessage(Buffer.from(message.serializeBinary()))).toBeInstanceOf(streamsPb.ReadResp);
  });

  test('cut short is an error and no event', () => {
    fc.assert(
      fc.property(samples, fc.nat(), (sample, at) => {
        const bytes = response(sample);
        expect(() => seen(readMessage(bytes.subarray(0, 1 + (at % (bytes.length - 1)))))).toThrow();
      }),
    );
  });
});
