/**
 * A server that speaks just enough of the protocol to take appends and to be read once, from memory: no disk, no TLS, no
 * decision. What a client reaches against it is what the client's own work and the connection leave room for.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type AddressInfo } from 'node:net';
import { GrpcServer, type Handler } from '../../../apps/event-node/src/grpc/server.js';
import { batchSuccess, decodeBatchChunk } from '../../../apps/event-node/src/protocol/batch-append.js';
import {
  CAUGHT_UP_FRAME,
  confirmationFrame,
  eventFrame,
} from '../../../apps/event-node/src/protocol/read-frames.js';
import { encodeRecord, streamField } from '../../../apps/event-node/src/protocol/record.js';
import { supportedMethods } from '../../../apps/event-node/src/services/server-features.js';

const EVENTS = 100_000;
const IDENTITY = randomUUID();

let position = 0;
const append: Handler = (call) =>
  call.listen({
    onMessage: (bytes) => {
      const { correlation, options, events } = decodeBatchChunk(bytes);
      position += 1500 * events.length;
      call.write(batchSuccess(correlation, options?.stream ?? '', events.length - 1, position));
    },
    onHalfClose: () => call.end(),
  });

const record = (stream: string, type: string, data: object): Buffer =>
  encodeRecord(
    {
      id: IDENTITY,
      type,
      json: true,
      data: Buffer.from(JSON.stringify(data)),
      customMetadata: Buffer.from(
        JSON.stringify({
          $correlationId: IDENTITY,
          $causationId: IDENTITY,
          at: new Date(0).toISOString(),
          by: 'bench',
          schemaVersion: 1,
        }),
      ),
    },
    streamField(stream),
    0,
    1,
    Date.now(),
  );

/** A subscription gets the same event over and over, and then waits; a read gets the log's identity. */
const read: Handler = (call) => {
  let request: Buffer | undefined;
  let open = true;
  const event = eventFrame(record('calls-x', 'CallFinished', { pad: 'x'.repeat(900) }), 1);
  const identity = eventFrame(
    record('log-identity', 'LogCreated', { logId: IDENTITY, createdAt: new Date(0).toISOString() }),
    1,
  );
  const serve = () => {
    if (request?.includes('log-identity')) {
      call.write(identity);
      call.end();
      return;
    }
    call.write(confirmationFrame(randomUUID()));
    let left = EVENTS;
    const more = () => {
      while (open && left > 0) {
        left--;
        if (!call.write(event)) return;
        if (left === 0) call.write(CAUGHT_UP_FRAME);
      }
    };
    call.onDrain(more);
    more();
  };
  call.listen({
    onMessage: (bytes) => (request ??= bytes),
    onHalfClose: serve,
    onGone: () => (open = false),
  });
};

const own = '/event_store.client';
const grpc = new GrpcServer(
  new Map([
    [`${own}.streams.Streams/BatchAppend`, append],
    [`${own}.streams.Streams/Read`, read],
    [`${own}.server_features.ServerFeatures/GetSupportedMethods`, supportedMethods],
  ]),
);
const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  grpc.accept(socket);
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
process.on('disconnect', () => process.exit(0));
