import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { invalid } from '../errors.js';
import type { Handler } from '../grpc/server.js';
import { unary } from '../grpc/unary.js';
import { expectationOf } from '../protocol/expectation.js';
import type { Written } from '../store/stream-writer.js';
import { streamName } from './append.js';
import { principalOf, type NodeContext } from './context.js';

type Request = streamsPb.DeleteReq | streamsPb.TombstoneReq;

/** Soft delete: readers find no stream, and a later append goes on behind the old revisions. */
export function softDelete(context: NodeContext): Handler {
  return unary(streamsPb.DeleteReq, async (request, authorization) => {
    const { position } = await remove(context, request, authorization, 'softDelete');
    const at = new streamsPb.DeleteResp.Position();
    at.setCommitPosition(String(position));
    at.setPreparePosition(String(position));
    const response = new streamsPb.DeleteResp();
    response.setPosition(at);
    return response;
  });
}

/** Tombstone: the name can never be used again. */
export function tombstone(context: NodeContext): Handler {
  return unary(streamsPb.TombstoneReq, async (request, authorization) => {
    const { position } = await remove(context, request, authorization, 'tombstone');
    const at = new streamsPb.TombstoneResp.Position();
    at.setCommitPosition(String(position));
    at.setPreparePosition(String(position));
    const response = new streamsPb.TombstoneResp();
    response.setPosition(at);
    return response;
  });
}

async function remove(
  context: NodeContext,
  request: Request,
  authorization: string | undefined,
  how: 'softDelete' | 'tombstone',
): Promise<Written> {
  const leave = context.calls.enter(() => undefined);
  try {
    const principal = principalOf(context, authorization);
    const options = request.getOptions();
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
