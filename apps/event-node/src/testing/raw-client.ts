import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';

/** A read with options that the client's own API does not let through. */
export async function rawRead(
  port: number,
  options: streamsPb.ReadReq.Options,
): Promise<streamsPb.ReadResp[]> {
  const request = new streamsPb.ReadReq();
  request.setOptions(options);
  const client = new streamsGrpc.StreamsClient(`127.0.0.1:${port}`, credentials.createInsecure());
  try {
    return await new Promise((resolve, reject) => {
      const responses: streamsPb.ReadResp[] = [];
      const call = client.read(request);
      call.on('data', (response: streamsPb.ReadResp) => responses.push(response));
      call.on('error', reject);
      call.on('end', () => resolve(responses));
    });
  } finally {
    client.close();
  }
}

/** Any method by its path; answers the error that it ends with. */
export async function rawUnary(port: number, path: string): Promise<ServiceError | null> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  try {
    return await new Promise((resolve) => {
      client.makeUnaryRequest(
        path,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.alloc(0),
        new Metadata(),
        (error) => resolve(error),
      );
    });
  } finally {
    client.close();
  }
}
