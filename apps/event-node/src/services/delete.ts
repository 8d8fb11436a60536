import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { invalid } from '../errors.js';
import { expectationOf } from '../protocol/expectation.js';
import { callEnding } from '../protocol/status.js';
import type { Written } from '../store/stream-writer.js';
import { streamName } from './append.js';
import { principalOf, type NodeContext } from './context.js';

type DeleteCall = ServerUnaryCall<streamsPb.DeleteReq, streamsPb.DeleteResp>;
type TombstoneCall = ServerUnaryCall<streamsPb.TombstoneReq, streamsPb.TombstoneResp>;

/** Soft delete: readers find no stream, and a later append goes on behind the old revisions. */
export function softDelete(context: NodeContext) {
  return (call: DeleteCall, answer: sendUnaryData<streamsPb.DeleteResp>): void => {
    void remove(context, call, 'softDelete').then(
      ({ position }) => {
        const at = new streamsPb.DeleteResp.Position();
        at.setCommitPosition(String(position));
        at.setPreparePosition(String(position));
        const response = new streamsPb.DeleteResp();
        response.setPosition(at);
        answer(null, response);
      },
      (error: unknown) => answer(callEnding(error)),
    );
  };
}

/** Tombstone: the name can never be used again. */
export function tombstone(context: NodeContext) {
  return (call: TombstoneCall, answer: sendUnaryData<streamsPb.TombstoneResp>): void => {
    void remove(context, call, 'tombstone').then(
      ({ position }) => {
        const at = new streamsPb.TombstoneResp.Position();
        at.setCommitPosition(String(position));
        at.setPreparePosition(String(position));
        const response = new streamsPb.TombstoneResp();
        response.setPosition(at);
        answer(null, response);
      },
      (error: unknown) => answer(callEnding(error)),
    );
  };
}

async function remove(
  context: NodeContext,
  call: DeleteCall | TombstoneCall,
  how: 'softDelete' | 'tombstone',
): Promise<Written> {
  const leave = context.calls.enter(() => undefined);
  try {
    const principal = principalOf(context, call.metadata);
    const options = call.request.getOptions();
    const expected = options && expectationOf(options);
    if (!options || expected === undefined)
      throw invalid('The request has no stream or no expected revision.');
    const stream = streamName(options.getStreamIdentifier());
    context.rights.check(principal, 'delete', stream);
    return await context.store[how](stream, expected);
  } finally {
    leave();
  }
}
