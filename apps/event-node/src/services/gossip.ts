import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { randomUUID } from 'node:crypto';
import { callEnding } from '../protocol/status.js';
import { notReady } from '../errors.js';
import type { NodeContext } from './context.js';

/** A cluster of one, which leads. */
export function gossip(
  context: NodeContext,
  endPoint: () => { readonly host: string; readonly port: number },
) {
  const instance = new sharedPb.UUID();
  instance.setString(randomUUID());
  return (
    _call: ServerUnaryCall<sharedPb.Empty, gossipPb.ClusterInfo>,
    answer: sendUnaryData<gossipPb.ClusterInfo>,
  ): void => {
    if (context.calls.stopping) {
      answer(callEnding(notReady()));
      return;
    }
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
    answer(null, info);
  };
}
