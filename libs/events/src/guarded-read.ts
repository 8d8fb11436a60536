import type { StreamingRead } from '@eventstore/db-client';
import { performance } from 'node:perf_hooks';
import { isMissingStream, readFailure } from './log-failures.js';

/** How long a read may wait for the next event before it counts as broken; a slow consumer does not count. */
const STALL_MS = 10_000;

/**
 * Hands out what a read gives and never leaves its call open: a read that is left early stays open on the server, and
 * after 100 of them every call of the connection hangs. A missing stream is an empty one.
 */
export async function* guardedRead<T>(
  what: string,
  open: () => StreamingRead<T>,
  stallMs = STALL_MS,
): AsyncGenerator<T, void, undefined> {
  const read = open();
  // The client emits errors by hand, even after the read was destroyed: without a listener they end the process.
  read.on('error', () => undefined);
  let waitingSince: number | undefined = performance.now();
  const watch = setInterval(() => {
    if (waitingSince !== undefined && performance.now() - waitingSince > stallMs)
      read.destroy(new Error(`nothing came for ${stallMs} ms`));
  }, stallMs / 4);
  let drained = false;
  try {
    for await (const item of read.iterator({ destroyOnReturn: false }) as AsyncIterable<T>) {
      waitingSince = undefined;
      yield item;
      waitingSince = performance.now();
    }
    drained = true;
  } catch (error) {
    if (isMissingStream(error)) {
      drained = true;
      return;
    }
    throw readFailure(what, error);
  } finally {
    clearInterval(watch);
    if (!drained) {
      await read.cancel().catch(() => undefined);
      // What had already come must flow off, else the client keeps the call for ever.
      read.resume();
    }
  }
}
