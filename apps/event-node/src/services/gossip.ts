import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { randomUUID } from 'node:crypto';
import { notReady } from '../errors.js';
import type { Handler } from '../grpc/server.js';
import { unary } from '../grpc/unary.js';
import type { NodeContext } from './context.js';

/** A cluster of one, which leads. */
export function gossip(
  context: NodeContext,
  endPoint: () => { readonly host: string; readonly port: number },
): Handler {
  const instance = new sharedPb.UUID();
  instance.setString(randomUUID());
  return unary(sharedPb.Empty, () => {
    if (context.calls.stopping) throw notReady();
    const { host, port } = endPoint();
    const address = new gossipPb.EndPoint();
    address.setAddress(host);
    address.setPort(port);
    const member = new gossipPb.MemberInfo();
    member.setInstanceId(instance);
    member.setTimeStamp(`${context.now()}0000`);
    member.setState(gossipPb.MemberInfo.VNodeState.LEADER);
    member.setIsAlive(true);
    member.setHttpEndPoint(address);
    const info = new gossipPb.ClusterInfo();
    info.addMembers(member);
    return info;
  });
}
