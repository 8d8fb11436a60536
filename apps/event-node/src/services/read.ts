import { randomUUID } from 'node:crypto';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { deleted, invalid } from '../errors.js';
import type { GrpcCall } from '../grpc/call.js';
import type { Handler } from '../grpc/server.js';
import { notFoundFrame } from '../protocol/read-frames.js';
import { parseReadRequest, type ReadRequest } from '../protocol/read-request.js';
import { isSoftDeleted, baseStreamOf, isMetadataStream } from '../store/stream-metadata.js';
import type { StoredEvent } from '../store/tail.js';
import { principalOf, type NodeContext } from './context.js';
import { framesFor } from './event-frames.js';
import { Outlet } from './outlet.js';
import { AllSubscription } from './subscribe-all.js';
import { StreamSubscription } from './subscribe-stream.js';

/** The one RPC behind reads and catch-up subscriptions. */
export function read(context: NodeContext): Handler {
  return (call) => {
    let leave: () => void = () => undefined;
    let message: Buffer | undefined;
    const outlet = new Outlet(call, () => leave());
    call.listen({
      onMessage: (bytes) => (message ??= bytes),
      onHalfClose: () => {
        serve(context, call, message, outlet, (taken) => (leave = taken)).catch((error: unknown) =>
          outlet.fail(error),
        );
      },
      onGone: outlet.gone,
    });
  };
}

async function serve(
  context: NodeContext,
  call: GrpcCall,
  message: Buffer | undefined,
  outlet: Outlet,
  entered: (leave: () => void) => void,
): Promise<void> {
  const principal = principalOf(context, call.authorization);
  entered(context.calls.enter(outlet.stop));
  const request = parseReadRequest(streamsPb.ReadReq.deserializeBinary(message ?? Buffer.alloc(0)));
  const mayRead = () => context.rights.check(principal, 'read', request.stream ?? '$all');
  mayRead();
  const { stream, count } = request;
  if (count === undefined) {
    const run = { context, outlet, request, mayRead, id: randomUUID() };
    await (stream === undefined
      ? new AllSubscription(run).run()
      : new StreamSubscription({ ...run, stream }).run());
  } else if (stream === undefined) await readAll(context, request, count, outlet);
  else await readStream(context, stream, request, count, outlet);
  outlet.end();
}

async function readAll(
  { store }: NodeContext,
  request: ReadRequest,
  count: number,
  outlet: Outlet,
): Promise<void> {
  const { from, backwards, filter } = request;
  if (typeof from === 'number' && from > store.nextPosition) {
    throw invalid(
      `Unable to complete read: invalid position ${from}, the log ends at ${store.nextPosition}.`,
    );
  }
  let cursor: number;
  if (backwards) cursor = from === 'end' ? Infinity : from === 'start' ? 0 : from;
  else cursor = from === 'start' ? -1 : from === 'end' ? store.tail.end : from - 1;
  // Infinity is no SQL integer.
  cursor = Math.min(cursor, Number.MAX_SAFE_INTEGER);
  await sendPages(outlet, count, framesFor(request, store.reader), (most) => {
    const limit = filter ? Infinity : most;
    const page = backwards ? store.reader.allBefore(cursor, limit) : store.reader.allAfter(cursor, limit);
    const last = page.at(-1);
    if (!last) return undefined;
    cursor = last.position;
    return filter ? page.filter((event) => filter.matches(event)) : page;
  });
}

async function readStream(
  { store }: NodeContext,
  stream: string,
  request: ReadRequest,
  count: number,
  outlet: Outlet,
): Promise<void> {
  const base = isMetadataStream(stream) ? baseStreamOf(stream) : stream;
  if (store.states.get(base).tombstoned) throw deleted(stream);
  if (store.states.get(stream).last < 0 || isSoftDeleted(store.states.metadata(stream))) {
    outlet.write(notFoundFrame(stream));
    return;
  }
  const { from, backwards } = request;
  const range = store.reader.visible(stream);
  let cursor = from === 'end' ? (backwards ? range.last : range.last + 1) : from === 'start' ? 0 : from;
  await sendPages(outlet, count, framesFor(request, store.reader), (most) => {
    const page = backwards
      ? store.reader.streamBackFrom(range, cursor, most)
      : store.reader.streamFrom(range, cursor, most);
    const last = page.at(-1);
    if (!last) return undefined;
    cursor = last.revision + (backwards ? -1 : 1);
    return page;
  });
}

/** Sends up to `count` events; `next` answers undefined at the end of what there is. */
async function sendPages(
  outlet: Outlet,
  count: number,
  frame: (event: StoredEvent) => Buffer,
  next: (most: number) => readonly StoredEvent[] | undefined,
): Promise<void> {
  let left = count;
  while (left > 0 && !outlet.isOver()) {
    const page = next(left);
    if (!page) return;
    for (const event of page) {
      if (!outlet.write(frame(event))) await outlet.drained();
      if (outlet.isOver() || --left === 0) return;
    }
    await outlet.breathe();
  }
}
