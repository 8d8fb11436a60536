import { Metadata, status, type ServiceError, type StatusObject } from '@grpc/grpc-js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import codePb from '@eventstore/db-client/generated/code_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { messageOf, NodeError, type Refusal, type RefusalCode } from '../errors.js';
import { expectationNumber } from './expectation.js';

/** What a call ends with: gRPC's status, and the trailers from which the client builds its typed errors. */
interface Ending {
  readonly code: status;
  readonly exception?: string;
}

const ENDINGS: Readonly<Record<RefusalCode, Ending>> = {
  'wrong-expected-version': { code: status.FAILED_PRECONDITION, exception: 'wrong-expected-version' },
  'stream-deleted': { code: status.FAILED_PRECONDITION, exception: 'stream-deleted' },
  'access-denied': { code: status.PERMISSION_DENIED, exception: 'access-denied' },
  unauthenticated: { code: status.UNAUTHENTICATED },
  timeout: { code: status.ABORTED },
  'append-too-large': { code: status.INVALID_ARGUMENT, exception: 'maximum-append-size-exceeded' },
  'missing-metadata-property': {
    code: status.INVALID_ARGUMENT,
    exception: 'missing-required-metadata-property',
  },
  'bad-request': { code: status.INVALID_ARGUMENT },
  'invalid-argument': { code: status.INVALID_ARGUMENT },
  'bad-stream-name': { code: status.UNKNOWN },
  'storage-failed': { code: status.UNAVAILABLE },
  'not-ready': { code: status.UNAVAILABLE },
  cancelled: { code: status.CANCELLED },
};

export function asNodeError(error: unknown): NodeError {
  if (error instanceof NodeError) return error;
  return new NodeError({ code: 'bad-stream-name' }, `The node failed on this call: ${messageOf(error)}`, {
    cause: error,
  });
}

/** The end of a unary call, a read or a subscription. */
export function callEnding(thrown: unknown): ServiceError {
  const error = asNodeError(thrown);
  const { code, exception } = ENDINGS[error.code];
  const metadata = new Metadata();
  if (exception) metadata.set('exception', exception);
  for (const [key, value] of trailersOf(error.refusal)) metadata.set(key, value);
  const ending: StatusObject = { code, details: error.message, metadata };
  return Object.assign(new Error(error.message), ending);
}

function trailersOf(refusal: Refusal): readonly (readonly [string, string])[] {
  if (refusal.code === 'wrong-expected-version') {
    return [
      ['stream-name', headerSafe(refusal.stream)],
      ['expected-version', String(expectationNumber(refusal.expected))],
      ['actual-version', String(refusal.actual)],
    ];
  }
  if (refusal.code === 'stream-deleted') return [['stream-name', headerSafe(refusal.stream)]];
  if (refusal.code === 'append-too-large') return [['maximum-append-size', String(refusal.limitBytes)]];
  if (refusal.code === 'missing-metadata-property') {
    return [['required-metadata-properties', refusal.required.join(',')]];
  }
  return [];
}

/** HTTP/2 headers carry visible ASCII alone; a name beyond it would end the call with an unreadable error. */
const headerSafe = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?');

/** The refusal of one append within the BatchAppend call. */
export function batchRefusal(correlation: Buffer, stream: string, thrown: unknown): Buffer {
  const error = asNodeError(thrown);
  const { code, type, message } = batchError(error);
  const details = new anyPb.Any();
  details.setTypeUrl(`type.googleapis.com/${type}`);
  details.setValue(message.serializeBinary());
  const wire = new statusPb.Status();
  wire.setCode(code);
  wire.setMessage(error.message);
  wire.setDetails(details);
  const identifier = new sharedPb.StreamIdentifier();
  identifier.setStreamName(Buffer.from(stream, 'utf8'));
  const response = new streamsPb.BatchAppendResp();
  response.setCorrelationId(sharedPb.UUID.deserializeBinary(correlation));
  response.setStreamIdentifier(identifier);
  response.setError(wire);
  return Buffer.from(response.serializeBinary());
}

interface BatchError {
  readonly code: codePb.Code;
  readonly type: string;
  readonly message: { serializeBinary(): Uint8Array };
}

function batchError({ refusal, message: sentence }: NodeError): BatchError {
  const own = 'event_store.client';
  switch (refusal.code) {
    case 'wrong-expected-version':
      return {
        code: codePb.Code.ALREADY_EXISTS,
        type: `${own}.WrongExpectedVersion`,
        message: wrongVersionDetails(refusal),
      };
    case 'stream-deleted': {
      const message = new sharedPb.StreamDeleted();
      const identifier = new sharedPb.StreamIdentifier();
      identifier.setStreamName(Buffer.from(refusal.stream, 'utf8'));
      message.setStreamIdentifier(identifier);
      return { code: codePb.Code.NOT_FOUND, type: `${own}.StreamDeleted`, message };
    }
    case 'access-denied':
    case 'unauthenticated':
      return {
        code: codePb.Code.PERMISSION_DENIED,
        type: `${own}.AccessDenied`,
        message: new sharedPb.AccessDenied(),
      };
    case 'timeout':
      return { code: codePb.Code.DEADLINE_EXCEEDED, type: `${own}.Timeout`, message: new sharedPb.Timeout() };
    case 'append-too-large': {
      const message = new sharedPb.MaximumAppendSizeExceeded();
      message.setMaxappendsize(refusal.limitBytes);
      return { code: codePb.Code.INVALID_ARGUMENT, type: `${own}.MaximumAppendSizeExceeded`, message };
    }
    case 'bad-stream-name':
    case 'bad-request':
    case 'invalid-argument':
    case 'missing-metadata-property': {
      const message = new sharedPb.BadRequest();
      message.setMessage(sentence);
      return { code: codePb.Code.INVALID_ARGUMENT, type: `${own}.BadRequest`, message };
    }
    case 'storage-failed':
    case 'not-ready':
    case 'cancelled':
      return { code: codePb.Code.UNKNOWN, type: `${own}.Unknown`, message: new sharedPb.Unknown() };
  }
}

/** The stream's revision and the expectation, as both append paths send them. */
export function wrongVersionDetails(
  refusal: Extract<Refusal, { code: 'wrong-expected-version' }>,
): sharedPb.WrongExpectedVersion {
  const message = new sharedPb.WrongExpectedVersion();
  if (refusal.actual < 0) message.setCurrentNoStream(new emptyPb.Empty());
  else message.setCurrentStreamRevision(String(refusal.actual));
  if (refusal.expected === 'any') message.setExpectedAny(new emptyPb.Empty());
  else if (refusal.expected === 'no_stream') message.setExpectedNoStream(new emptyPb.Empty());
  else if (refusal.expected === 'stream_exists') message.setExpectedStreamExists(new emptyPb.Empty());
  else message.setExpectedStreamPosition(String(refusal.expected));
  return message;
}
