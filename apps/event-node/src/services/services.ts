import { GrpcServer } from '../grpc/server.js';
import { append } from './append.js';
import { batchAppend } from './batch-append.js';
import type { NodeContext } from './context.js';
import { softDelete, tombstone } from './delete.js';
import { gossip } from './gossip.js';
import { read } from './read.js';
import { supportedMethods } from './server-features.js';

/** The gRPC server with every method that the node has; any other answers UNIMPLEMENTED. */
export function createGrpcServer(
  context: NodeContext,
  endPoint: () => { readonly host: string; readonly port: number },
): GrpcServer {
  const own = '/event_store.client';
  return new GrpcServer(
    new Map([
      [`${own}.streams.Streams/Read`, read(context)],
      [`${own}.streams.Streams/Append`, append(context)],
      [`${own}.streams.Streams/BatchAppend`, batchAppend(context)],
      [`${own}.streams.Streams/Delete`, softDelete(context)],
      [`${own}.streams.Streams/Tombstone`, tombstone(context)],
      [`${own}.server_features.ServerFeatures/GetSupportedMethods`, supportedMethods],
      [`${own}.gossip.Gossip/Read`, gossip(context, endPoint)],
    ]),
  );
}
