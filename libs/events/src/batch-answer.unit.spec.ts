import { expect, test } from 'vitest';
import fc from 'fast-check';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { batchAnswer } from './batch-answer.js';

const answer = (correlationId: string): streamsPb.BatchAppendResp => {
  const id = new sharedPb.UUID();
  id.setString(correlationId);
  const stream = new sharedPb.StreamIdentifier();
  stream.setStreamName(Buffer.from('worker-1'));
  const message = new streamsPb.BatchAppendResp();
  message.setCorrelationId(id);
  message.setStreamIdentifier(stream);
  return message;
};

test('a success is read with its id, revision and position', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.maxSafeNat(), fc.maxSafeNat(), (correlationId, revision, position) => {
      const at = new sharedPb.AllStreamPosition();
      at.setCommitPosition(String(position));
      at.setPreparePosition(String(position));
      const success = new streamsPb.BatchAppendResp.Success();
      success.setCurrentRevision(String(revision));
      success.setPosition(at);
      const message = answer(correlationId);
      message.setSuccess(success);
      expect(batchAnswer(Buffer.from(message.serializeBinary()))).toEqual({
        correlationId,
        appended: { revision, position: { commit: BigInt(position), prepare: BigInt(position) } },
      });
    }),
  );
});

test('a refusal is handed over as the protocol’s own classes read it', () => {
  const status = new statusPb.Status();
  status.setMessage('no');
  const message = answer('7f9c24e5-0d0b-4a9e-8f0e-2f1f4c1b0a01');
  message.setError(status);
  const read = batchAnswer(Buffer.from(message.serializeBinary()));
  expect(read.correlationId).toBe('7f9c24e5-0d0b-4a9e-8f0e-2f1f4c1b0a01');
  expect(read.appended).toBeUndefined();
  expect(read.response?.getError()?.getMessage()).toBe('no');
});
