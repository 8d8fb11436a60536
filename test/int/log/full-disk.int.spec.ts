import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { WorkerEvent } from '#domain/events/index.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog, NewEvent } from '#events/event-log.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { SAMPLES } from '#events/testing/samples.js';
import { until } from '#events/testing/until.js';
import { skippedWhen } from '#runtime/testing/skipped.js';
import { startTestNode, temporaryFolder } from '../../../apps/event-node/src/testing/node-fixture.js';

const pin = (): NewEvent<WorkerEvent> => ({
  id: randomUUID(),
  event: { type: 'PinSet', data: { ...SAMPLES.PinSet, by: 'b'.repeat(100_000) } },
  cause: { correlationId: 'c', causationId: 'c' },
});
const open = (url: string): EventLog => openEventLog({ url, by: 'test', now: Date.now });
const idsIn = (log: EventLog): Promise<string[]> =>
  log.fold('worker-w', [] as string[], (ids, { id }) => [...ids, id]);
const refusal = {
  ok: false,
  error: {
    kind: 'unavailable',
    message: expect.stringContaining('The disk that holds the event log is full') as string,
  },
};

it('an append to a full disk is unavailable with the reason; reads go on, and the same append is taken later', async () => {
  const running = await startTestNode();
  const log = open(running.node.connectionString);
  const first = pin();
  await log.append('worker-w', [first], 'no-stream');
  running.node.database.exec('pragma max_page_count = 40');
  const second = pin();
  expect(await log.append('worker-w', [second], 0)).toMatchObject(refusal);
  expect(await idsIn(log)).toEqual([first.id]);
  running.node.database.exec('pragma max_page_count = 1000000');
  await until(async () => (await log.append('worker-w', [second], 0)).ok);
  expect(await idsIn(log)).toEqual([first.id, second.id]);
  await log.close();
  await running.stop();
});

it.skipIf(skippedWhen(process.getuid?.() !== 0, 'a disk that is really full is mounted, which needs root'))(
  'on a disk that is really full nothing acknowledged is lost, not even when the node is killed there',
  { timeout: 120_000 },
  async () => {
    const folder = temporaryFolder();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m,mode=0700', 'tmpfs', folder.path]);
    try {
      const node = await startEmbeddedNode(folder.path);
      const log = open(node.url);
      const taken: string[] = [];
      const fill = async () => {
        for (;;) {
          const event = pin();
          const outcome = await log.append('worker-w', [event], taken.length - 1);
          if (!outcome.ok) return outcome;
          taken.push(event.id);
        }
      };
      expect(await fill()).toMatchObject(refusal);
      expect(taken.length).toBeGreaterThan(3);
      expect(await idsIn(log)).toEqual(taken);
      await node.kill9();
      execFileSync('mount', ['-o', 'remount,size=64m', folder.path]);
      await node.restart();
      const last = pin();
      await until(async () => (await log.append('worker-w', [last], taken.length - 1)).ok);
      expect(await idsIn(log)).toEqual([...taken, last.id]);
      await log.close();
      await node.stop();
    } finally {
      execFileSync('umount', ['-l', folder.path]);
      folder.remove();
    }
  },
);
