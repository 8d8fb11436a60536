import { join } from 'node:path';
import { expect, it } from 'vitest';
import { START } from '@eventstore/db-client';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { skippedWhen } from '#runtime/testing/skipped.js';
import {
  connect,
  disposeWithin,
  temporaryFolder,
} from '../../../apps/event-node/src/testing/node-fixture.js';
import { buildLog } from '../../bench/event-node/build-log.js';
import { residentBytesOf } from '../../bench/event-node/node-process.js';

const EVENTS = 20_000;

it.skipIf(
  skippedWhen(residentBytesOf(process.pid) === undefined, 'the memory of a process is read from /proc'),
)(
  'a log that is read over and over takes no more memory of the node than reading it once',
  { timeout: 180_000 },
  async () => {
    const folder = temporaryFolder();
    const dir = join(folder.path, 'log');
    buildLog(dir, EVENTS, () => undefined);
    const node = await startEmbeddedNode(dir);
    const client = connect(node.url);
    const readAll = async () => {
      let read = 0;
      for await (const { event } of client.readAll({ fromPosition: START })) if (event) read++;
      expect(read).toBeGreaterThanOrEqual(EVENTS);
      return residentBytesOf(node.pid) ?? NaN;
    };
    const once = await readAll();
    let often = once;
    for (let i = 0; i < 4; i++) often = await readAll();
    // 20 MB are read each time: kept, they would add more than half of it.
    expect(often / once).toBeLessThan(1.4);
    await disposeWithin(client);
    await node.stop();
    folder.remove();
  },
);
