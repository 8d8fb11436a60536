import featuresPb from '@eventstore/db-client/generated/serverfeatures_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { unary } from '../grpc/unary.js';

/** The version whose behaviour this node follows; the client compares it with those it knows. */
export const COMPATIBLE_VERSION = '24.10.0';

const STREAMS = 'event_store.client.streams.streams';
const METHODS = ['read', 'append', 'batchappend', 'delete', 'tombstone'];

/** What the client asks before its first append. Never fails: the client would keep the failure for ever. */
export const supportedMethods = unary(sharedPb.Empty, () => {
  const response = new featuresPb.SupportedMethods();
  response.setEventStoreServerVersion(COMPATIBLE_VERSION);
  for (const name of METHODS) {
    const method = new featuresPb.SupportedMethod();
    method.setServiceName(STREAMS);
    method.setMethodName(name);
    if (name === 'read') method.setFeaturesList(['position', 'events']);
    response.addMethods(method);
  }
  return response;
});
