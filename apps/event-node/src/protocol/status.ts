import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import codePb from '@eventstore/db-client/generated/code_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { messageOf, NodeError, type Refusal, type RefusalCode } from '../errors.js';
import { expectationNumber } from './expectation.js';

/** gRPC's status codes, as far as this node ends calls with them. */
export const GRPC = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** What a call ends with: the status, and the trailers from which the client builds its typed errors. */
export interface Ending {
  readonly code: (typeof GRPC)[keyof typeof GRPC];
  readonly message: string;
  readonly trailers: Readonly<Record<string, string>>;
}

const ENDINGS: Readonly<Record<RefusalCode, { readonly code: Ending['code']; readonly exception?: string }>> =
  {
    'wrong-expected-version': { code: GRPC.FAILED_PRECONDITION, exception: 'wrong-expected-version' },
    'stream-deleted': { code: GRPC.FAILED_PRECONDITION, exception: 'stream-deleted' },
    'access-denied': { code: GRPC.PERMISSION_DENIED, exception: 'access-denied' },
    unauthenticated: { code: GRPC.UNAUTHENTICATED },
    timeout: { code: GRPC.ABORTED },
    'append-too-large': { code: GRPC.INVALID_ARGUMENT, exception: 'maximum-append-size-exceeded' },
    'missing-metadata-property': {
      code: GRPC.INVALID_ARGUMENT,
      exception: 'missing-required-metadata-property',
    },
    'bad-request': { code: GRPC.INVALID_ARGUMENT },
    'invalid-argument': { code: GRPC.INVALID_ARGUMENT },
    'bad-stream-name': { code: GRPC.UNKNOWN },
    'storage-failed': { code: GRPC.UNAVAILABLE },
    'not-ready': { code: GRPC.UNAVAILABLE },
    cancelled: { code: GRPC.CANCELLED },
  };

export function asNodeError(error: unknown): NodeError {
  if (error instanceof NodeError) return error;
  return new NodeError({ code: 'bad-stream-name' }, `The node failed on this call: ${messageOf(error)}`, {
    cause: error,
  });
}

/** The end of a unary call, a read or a subscription. */
export function callEnding(thrown: unknown): Ending {
  const error = asNodeError(thrown);
  const { code, exception } = ENDINGS[error.code];
  const trailers = { ...(exception ? { exception } : {}), ...trailersOf(error.refusal) };
  return { code, message: error.message, trailers };
}

function trailersOf(refusal: Refusal): Readonly<Record<string, string>> {
  if (refusal.code === 'wrong-expected-version') {
    return {
      'stream-name': headerSafe(refusal.stream),
      'expected-version': String(expectationNumber(refusal.expected)),
      'actual-version': String(refusal.actual),
    };
  }
  if (refusal.code === 'stream-deleted') return { 'stream-name': headerSafe(refusal.stream) };
  if (refusal.code === 'append-too-large') return { 'maximum-append-size': String(refusal.limitBytes) };
  if (refusal.code === 'missing-metadata-property') {
    return { 'required-metadata-properties': refusal.required.join(',') };
  }
  return {};
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
