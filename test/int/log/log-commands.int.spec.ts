import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReadingsEvent, WorkerEvent } from '#domain/events/index.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog, NewEvent } from '#events/event-log.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { SAMPLES } from '#events/testing/samples.js';
import { packageRoot } from '#runtime/process-info.js';
import { connect, disposeWithin } from '../../../apps/event-node/src/testing/node-fixture.js';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const folders: string[] = [];
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'berth-log-'));
  folders.push(made);
  return made;
};
const home = folder();
const other = folder();

/** `berth log …` as a person types it, without any address in its environment. */
const berthLog = (of: string, ...args: string[]) =>
  new Promise<Ended>((resolve) => {
    const env = { PATH: process.env['PATH'], BERTH_HOME: of };
    execFile(
      process.execPath,
      [join(packageRoot(), 'bin/berth'), 'log', ...args],
      { env },
      (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr }),
    );
  });
const written = <E extends ReadingsEvent | WorkerEvent>(event: E): NewEvent<E> => ({
  id: randomUUID(),
  event,
  cause: { correlationId: 'c', causationId: 'c' },
});
const pins = (count: number) =>
  Array.from({ length: count }, () => written<WorkerEvent>({ type: 'PinSet', data: SAMPLES.PinSet }));
const readings = (count: number) =>
  Array.from({ length: count }, () =>
    written<ReadingsEvent>({ type: 'DevicesRead', data: SAMPLES.DevicesRead }),
  );

describe('berth log, on the log of a Berth that runs with TLS', { timeout: 120_000 }, () => {
  let node: EmbeddedNode;
  let log: EventLog;
  const backup = join(folder(), 'backup');

  beforeAll(async () => {
    node = await startEmbeddedNode(join(home, 'event-node'), { secure: true });
    log = openEventLog({ url: node.url, by: 'test', now: Date.now });
    await log.append('worker-w', pins(5), 'no-stream');
  });
  afterAll(async () => {
    await log.close();
    await node.stop();
    for (const made of folders) rmSync(made, { recursive: true, force: true });
  });

  it('copies, compacts and checks it while it is in use, and says nothing else', async () => {
    const copied = await berthLog(home, 'backup', backup);
    expect(copied).toMatchObject({ code: 0, stderr: '' });
    expect(copied.stdout).toMatch(/^Copied the log up to position \d+ to .*log\.db \(.* MiB\)\.\n$/);

    // Behind the backup; the first three are hidden.
    await log.append('readings-w', readings(4), 'no-stream');
    const client = connect(node.url);
    await client.setStreamMetadata('readings-w', { maxCount: 1 });
    await disposeWithin(client);
    const scavenged = await berthLog(home, 'scavenge');
    expect(scavenged).toMatchObject({ code: 0, stderr: '' });
    expect(scavenged.stdout).toMatch(/^Removed 3 events of 1 stream, /);

    // Two system events, the identity, five pins, one reading and its stream's metadata.
    expect(await berthLog(home, 'verify')).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^The log is sound: 10 events in 6 streams, up to/) as string,
    });
    expect(await berthLog(home, 'check', '--at-rest')).toEqual({
      code: 0,
      stderr: '',
      stdout: 'Every invariant holds. Every event has the form of its type.\n',
    });
  });

  it('puts a copy where no log is, and nowhere else; there it serves what it held, as another log', async () => {
    expect(await berthLog(home, 'restore', backup)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Another event node is running') as string,
    });
    expect(await berthLog(other, 'restore', backup)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Restored 7 events to .* The log has a new identity/) as string,
    });
    expect(await berthLog(other, 'restore', backup)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is a log in') as string,
    });
    expect(await berthLog(other, 'verify')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^The log is sound: 7 events/) as string,
    });
    const restored = await startEmbeddedNode(join(other, 'event-node'), { secure: true });
    const reader = openEventLog({ url: restored.url, by: 'test', now: Date.now });
    try {
      const pinned = (of: EventLog) => of.fold('worker-w', [] as string[], (ids, { id }) => [...ids, id]);
      expect(await pinned(reader)).toEqual(await pinned(log));
      expect(await reader.readBackwards('readings-w', 1)).toEqual([]);
      expect(await reader.identity()).not.toBe(await log.identity());
    } finally {
      await reader.close();
      await restored.stop();
    }
  });

  it('ends with 1 and names the fault when an invariant is broken, or the file is', async () => {
    const orphan = written({ type: 'ResidentReady', data: SAMPLES.ResidentReady });
    await log.append('worker-w', [orphan], 'any');
    const checked = await berthLog(home, 'check');
    expect(checked).toMatchObject({ code: 1, stderr: '' });
    expect(checked.stdout).toMatch(/^invariant 1, worker-w at 5: .*no load was started/m);
    expect(checked.stdout).toMatch(/\d+ violations? of the invariants\.\n$/);

    const file = new Database(join(other, 'event-node', 'log.db'));
    file.exec('delete from events where revision = 2');
    file.close();
    expect(await berthLog(other, 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/Stream 'worker-w' lacks 1 .*\n1 fault: 7 events in 4 streams/) as string,
    });
  });
});
