import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BerthEvent } from '#domain/events/index.js';
import { openEventLog } from './connect.js';
import type { EventLog } from './event-log.js';
import { type CatchUp, runCatchUp } from './runner/catch-up.js';
import type { CatchUpSink } from './runner/sink.js';
import { openSpool } from './spool.js';
import { type EmbeddedNode, startEmbeddedNode } from './testing/embedded-node.js';
import { until } from './testing/until.js';

const recorder = join(import.meta.dirname, '../../../dist/libs/events/src/testing/spool-recorder.js');

let node: EmbeddedNode;
let log: EventLog;
let dir: string;

beforeAll(async () => {
  node = await startEmbeddedNode();
  log = openEventLog({ url: node.url, by: 'test', now: Date.now });
  dir = mkdtempSync(join(tmpdir(), 'berth-spool-kill-'));
});
afterAll(async () => {
  await log.close();
  await node.stop();
  rmSync(dir, { recursive: true, force: true });
});

const numbers = async (stream: string): Promise<number[]> => {
  const found: number[] = [];
  for await (const { event } of log.readForwards<Extract<BerthEvent, { type: 'CallStarted' }>>(stream))
    found.push(event.data.promptBytes);
  return found;
};
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

/** Kills a recorder once it says that so many events have settled; what it said last is what must be there. */
async function recordAndKill(stream: string, attempt: number, settledAtLeast: number): Promise<number> {
  const child: ChildProcess = fork(recorder, [node.url, dir, stream, String(attempt)], { execArgv: [] });
  let settled = 0;
  child.on('message', (message: { settled: number }) => (settled = message.settled));
  try {
    await until(() => settled >= settledAtLeast, 60_000);
  } finally {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
  return settled;
}

it(
  'a recorder that is killed loses nothing that had settled, in the node’s absence too, and nothing comes twice',
  { timeout: 180_000 },
  async () => {
    for (const [attempt, away] of [false, true].entries()) {
      const stream = `calls-kill-${attempt}`;
      const killed = recordAndKill(stream, attempt, 2000);
      if (away) {
        await until(async () => (await log.readBackwards(stream, 1)).length > 0, 60_000);
        await node.kill9();
      }
      const settled = await killed;
      if (away) await node.restart();
      const spool = openSpool({ dir, log, now: Date.now });
      expect(await spool.drain(60_000)).toBe(true);
      await spool.close();
      const found = await numbers(stream);
      expect(found.length).toBeGreaterThanOrEqual(settled);
      expect(found).toEqual(upTo(found.length));
      expect(readdirSync(dir).filter((f) => f.endsWith('.spool'))).toEqual([]);
    }
  },
);

it(
  'the runner follows the real log through kills of the node, each event once',
  { timeout: 180_000 },
  async () => {
    const rows: number[] = [];
    let stored: Awaited<ReturnType<CatchUpSink['begin']>> = {};
    const sink: CatchUpSink = {
      begin: () => Promise.resolve(stored),
      reset: () => {
        rows.length = 0;
        stored = {};
        return Promise.resolve();
      },
      commit: (batch, position) => {
        for (const { event } of batch.events)
          if (event.type === 'CallStarted') rows.push(event.data.promptBytes);
        stored = { checkpoint: position, logId: batch.logId };
        return Promise.resolve();
      },
    };
    const stream = 'calls-followed';
    const start = (): CatchUp => runCatchUp({ log, name: 'test', prefixes: [stream], sink });
    let runner = start();
    const killed = recordAndKill(stream, 9, 2500);
    await until(() => rows.length > 500, 60_000);
    await runner.stop();
    runner = start();
    await node.kill9();
    await node.restart();
    await killed;
    const spool = openSpool({ dir, log, now: Date.now });
    expect(await spool.drain(60_000)).toBe(true);
    await spool.close();
    const found = await numbers(stream);
    await until(() => rows.length >= found.length, 60_000);
    await runner.stop();
    expect(rows).toEqual(found);
    expect(found).toEqual(upTo(found.length));
  },
);
