import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ReadingsEvent } from '#domain/events/index.js';
import { RAM, workerId } from '#domain/ids.js';
import { openEventLog } from '#events/connect.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import { createLogger } from '#runtime/logger.js';
import { startEmbeddedNode, type EmbeddedNode } from '../../../../libs/events/src/testing/embedded-node.js';
import { ReadingsLog } from './readings-log.js';

let node: EmbeddedNode;
beforeAll(async () => {
  node = await startEmbeddedNode();
});
afterAll(() => node.stop());

it('keeps readings for an hour, in batches, and bounds the stream once over every start', async () => {
  const log = openEventLog({ url: node.url, by: 'test', now: Date.now });
  const worker = workerId(newId());
  const stream = streams.readings(worker);
  const client = EventStoreDBClient.connectionString(node.url);
  try {
    for (const usedBytes of [1, 2]) {
      const kept = new ReadingsLog(log, worker, createLogger('readings-test'), 60_000);
      kept.add({ takenAt: new Date().toISOString(), devices: [{ deviceId: RAM, totalBytes: 9, usedBytes }] });
      kept.add({ takenAt: new Date().toISOString(), devices: [{ deviceId: RAM, totalBytes: 9 }] });
      await kept.flush();
      await kept.stop();
    }
    const used: (number | undefined)[] = [];
    for await (const { event } of log.readForwards<ReadingsEvent>(stream))
      used.push(event.data.devices[0]?.usedBytes);
    expect(used).toEqual([1, undefined, 2, undefined]);
    const bounds = await client.getStreamMetadata(stream);
    expect(bounds.metadata?.maxAge).toBe(3600);
    const written: string[] = [];
    for await (const { event } of client.readStream(`$$${stream}`)) written.push(event?.type ?? '');
    expect(written).toEqual(['$metadata']);
  } finally {
    await client.dispose();
    await log.close();
  }
});
