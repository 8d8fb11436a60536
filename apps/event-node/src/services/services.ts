import { Server, type ServiceDefinition } from '@grpc/grpc-js';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { append } from './append.js';
import { batchAppend } from './batch-append.js';
import type { NodeContext } from './context.js';
import { softDelete, tombstone } from './delete.js';
import { gossip } from './gossip.js';
import { read } from './read.js';
import { supportedMethods } from './server-features.js';

const MAX_MESSAGE_BYTES = 17 * 1024 * 1024;
/** As in production, so that a client that leaves reads open meets the same wall here. */
const MAX_OPEN_CALLS = 100;
const RECEIVE_WINDOW_BYTES = 4 * 1024 * 1024;

const asIs = (bytes: Buffer): Buffer => bytes;

/** The gRPC server with every service that the node has; any other method answers UNIMPLEMENTED. */
export function createGrpcServer(
  context: NodeContext,
  endPoint: () => { readonly host: string; readonly port: number },
): Server {
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': MAX_OPEN_CALLS,
    'grpc.keepalive_time_ms': 10_000,
    'grpc.keepalive_timeout_ms': 20_000,
  });
  widenReceiveWindow(server);
  const streams = streamsGrpc.StreamsService;
  // The two hot messages are encoded and decoded by hand.
  const definition: ServiceDefinition = {
    ...(streams as unknown as ServiceDefinition),
    read: { ...streams.read, responseSerialize: asIs },
    batchAppend: { ...streams.batchAppend, requestDeserialize: asIs, responseSerialize: asIs },
  };
  server.addService(definition, {
    read: read(context),
    append: append(context),
    batchAppend: batchAppend(context),
    delete: softDelete(context),
    tombstone: tombstone(context),
  });
  server.addService(featuresGrpc.ServerFeaturesService, {
    getSupportedMethods: supportedMethods,
  });
  server.addService(gossipGrpc.GossipService, {
    read: gossip(context, endPoint),
  });
  return server;
}

/**
 * grpc-js has no option for the window in which a client may send ahead; with HTTP/2's default of 64 KiB batches of
 * events arrive a third slower. Where its inside looks different the default stays.
 */
function widenReceiveWindow(server: Server): void {
  const inside = server as unknown as {
    commonServerOptions?: { settings?: { initialWindowSize?: number } };
  };
  const settings = inside.commonServerOptions?.settings;
  if (settings) settings.initialWindowSize = RECEIVE_WINDOW_BYTES;
}
export { RECEIVE_WINDOW_BYTES };
