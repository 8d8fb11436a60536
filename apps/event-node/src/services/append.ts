import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { invalid, NodeError } from '../errors.js';
import type { Handler } from '../grpc/server.js';
import { proposed, uuidOf } from '../protocol/batch-append.js';
import { expectationOf } from '../protocol/expectation.js';
import type { ProposedEvent } from '../protocol/record.js';
import { callEnding } from '../protocol/status.js';
import { eventBytes, MAX_APPEND_BYTES, tooLarge } from './append-limits.js';
import { principalOf, type NodeContext } from './context.js';

/** The append of clients that send credentials of their own with the call: options first, then an event a message. */
export function append(context: NodeContext): Handler {
  return (call) => {
    let answered = false;
    let leave: () => void = () => undefined;
    const end = (error: unknown, response?: streamsPb.AppendResp) => {
      if (answered) return;
      answered = true;
      leave();
      if (!response) {
        call.fail(callEnding(error));
        return;
      }
      call.write(Buffer.from(response.serializeBinary()));
      call.end();
    };
    let options: streamsPb.AppendReq.Options | undefined;
    const events: ProposedEvent[] = [];
    let bytes = 0;
    const take = (message: streamsPb.AppendReq) => {
      if (message.hasOptions()) options = message.getOptions();
      const wire = message.getProposedMessage();
      if (!wire) return;
      const event = eventOf(wire);
      if (event instanceof NodeError) throw event;
      events.push(event);
      bytes += eventBytes(event);
      if (bytes > MAX_APPEND_BYTES) throw tooLarge();
    };
    const attempt = (work: () => void) => {
      if (answered) return;
      try {
        work();
      } catch (error) {
        end(error);
      }
    };
    attempt(() => {
      const principal = principalOf(context, call.authorization);
      leave = context.calls.enter((reason) => end(new NodeError({ code: 'not-ready' }, reason.message)));
      call.listen({
        onMessage: (message) => attempt(() => take(streamsPb.AppendReq.deserializeBinary(message))),
        onHalfClose: () =>
          attempt(() => {
            const expected = options && expectationOf(options);
            if (!options || expected === undefined)
              throw invalid('The append has no stream or no expected revision.');
            const stream = streamName(options.getStreamIdentifier());
            context.rights.check(principal, 'write', stream);
            context.store.append(stream, expected, events).then(
              ({ revision, position }) => end(undefined, success(revision, position)),
              (error: unknown) => end(error, wrongVersion(error)),
            );
          }),
        onGone: () => {
          answered = true;
          leave();
        },
      });
    });
  };
}

export function streamName(identifier: sharedPb.StreamIdentifier | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}

function eventOf(wire: streamsPb.AppendReq.ProposedMessage): ProposedEvent | NodeError {
  const metadata = wire.getMetadataMap();
  return proposed(
    idOf(wire.getId()),
    metadata.get('type'),
    metadata.get('content-type'),
    wire.getData_asU8(),
    wire.getCustomMetadata_asU8(),
  );
}

function idOf(id: sharedPb.UUID | undefined): string {
  const structured = id?.getStructured();
  if (!structured) return id?.getString() ?? '';
  return uuidOf(BigInt(structured.getMostSignificantBits()), BigInt(structured.getLeastSignificantBits()));
}

function success(revision: number, position: number): streamsPb.AppendResp {
  const body = new streamsPb.AppendResp.Success();
  if (revision < 0) body.setNoStream(new sharedPb.Empty());
  else body.setCurrentRevision(String(revision));
  if (position >= 0) {
    const at = new streamsPb.AppendResp.Position();
    at.setCommitPosition(String(position));
    at.setPreparePosition(String(position));
    body.setPosition(at);
  } else body.setNoPosition(new sharedPb.Empty());
  const response = new streamsPb.AppendResp();
  response.setSuccess(body);
  return response;
}

/** On this path a wrong expectation is an answer, not an error. */
function wrongVersion(error: unknown): streamsPb.AppendResp | undefined {
  if (!(error instanceof NodeError) || error.refusal.code !== 'wrong-expected-version') return undefined;
  const { actual, expected } = error.refusal;
  const body = new streamsPb.AppendResp.WrongExpectedVersion();
  if (actual < 0) body.setCurrentNoStream(new sharedPb.Empty());
  else body.setCurrentRevision(String(actual));
  if (expected === 'any') body.setExpectedAny(new sharedPb.Empty());
  else if (expected === 'no_stream') body.setExpectedNoStream(new sharedPb.Empty());
  else if (expected === 'stream_exists') body.setExpectedStreamExists(new sharedPb.Empty());
  else body.setExpectedRevision(String(expected));
  const response = new streamsPb.AppendResp();
  response.setWrongExpectedVersion(body);
  return response;
}
