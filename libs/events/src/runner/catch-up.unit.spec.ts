import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { BerthEvent, LogPosition } from '#domain/events/index.js';
import { BackOff } from '../back-off.js';
import { MemoryLog } from '../testing/memory-log.js';
import { SAMPLES } from '../testing/samples.js';
import { until } from '../testing/until.js';
import { type CatchUp, type CatchUpOptions, runCatchUp } from './catch-up.js';
import { type CatchUpBatch, type CatchUpSink, dispatch, type EventHandlers } from './sink.js';

/** Rows and checkpoint that change together or not at all, and a plan of when to fail. */
class MemorySink implements CatchUpSink {
  rows: string[] = [];
  checkpoint: LogPosition | undefined;
  logId: string | undefined;
  commits: CatchUpBatch[] = [];
  resets = 0;
  fault: () => 'none' | 'begin' | 'handler' | 'before' | 'after' = () => 'none';
  readonly handlers: EventHandlers<string[]> = {
    PinSet: ({ event }, tx) => void tx.push(event.data.by),
  };

  begin() {
    if (this.fault() === 'begin') return Promise.reject(new Error('no connection'));
    return Promise.resolve({
      ...(this.checkpoint ? { checkpoint: this.checkpoint } : {}),
      ...(this.logId ? { logId: this.logId } : {}),
    });
  }

  reset(): Promise<void> {
    this.resets++;
    this.rows = [];
    this.checkpoint = undefined;
    this.logId = undefined;
    return Promise.resolve();
  }

  async commit(batch: CatchUpBatch, position: LogPosition): Promise<void> {
    const fault = this.fault();
    if (this.checkpoint?.commit !== batch.after?.commit) throw new Error('somebody else is at work');
    const tx = [...this.rows];
    await dispatch(this.handlers, fault === 'handler' ? batch.events.slice(1) : batch.events, tx);
    if (fault === 'handler' || fault === 'before') throw new Error(`died: ${fault}`);
    this.rows = tx;
    this.checkpoint = position;
    this.logId = batch.logId;
    this.commits.push(batch);
    if (fault === 'after') throw new Error('the answer was lost');
  }
}

let running: CatchUp[] = [];
afterEach(async () => {
  await Promise.all(running.map((r) => r.stop()));
  running = [];
});

const pin = async (log: MemoryLog, ...names: string[]) => {
  for (const name of names)
    await log.append(
      'worker-a',
      [
        {
          id: randomUUID(),
          event: { type: 'PinSet', data: { ...SAMPLES.PinSet, by: name } },
          cause: { correlationId: 'c', causationId: 'c' },
        },
      ],
      'any',
    );
};
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => String(from + i));

const start = (log: MemoryLog, sink: CatchUpSink, more: Partial<CatchUpOptions> = {}): CatchUp => {
  const runner = runCatchUp({
    log,
    name: 'test',
    prefixes: ['worker-'],
    sink,
    batchEvents: 7,
    batchMs: 1,
    liveLingerMs: 0,
    backOff: new BackOff({ firstMs: 1, mostMs: 2 }),
    ...more,
  });
  running.push(runner);
  return runner;
};

describe('the catch-up runner', () => {
  it('hands over what is in the log in order and in batches, then follows it', async () => {
    const log = new MemoryLog();
    const sink = new MemorySink();
    await pin(log, ...numbers(0, 30));
    const runner = start(log, sink);
    await until(() => runner.live && sink.rows.length === 30);
    expect(sink.rows).toEqual(numbers(0, 30));
    expect(Math.max(...sink.commits.map((b) => b.events.length))).toBe(7);
    await pin(log, 'new');
    await until(() => sink.rows.length === 31);
    expect(sink.checkpoint).toEqual(log.all.at(-1)?.position);
    expect(runner.position).toEqual(sink.checkpoint);
  });

  it('goes on after its checkpoint', async () => {
    const log = new MemoryLog();
    const sink = new MemorySink();
    await pin(log, ...numbers(0, 10));
    const first = start(log, sink);
    await until(() => sink.rows.length === 10);
    await first.stop();
    await pin(log, ...numbers(10, 20));
    start(log, sink);
    await until(() => sink.rows.length === 20);
    expect(sink.rows).toEqual(numbers(0, 20));
  });

  it('writes each event once through 200 failures at any point, and kills', async () => {
    const log = new MemoryLog();
    const sink = new MemorySink();
    // A small generator of its own, so that a failing run can be repeated.
    let seed = 12345;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    let failures = 0;
    sink.fault = () => {
      if (failures >= 200 || random(3) > 0) return 'none';
      failures++;
      return (['begin', 'handler', 'before', 'after'] as const)[random(4)] ?? 'none';
    };
    let runner = start(log, sink);
    let written = 0;
    while (failures < 200) {
      await pin(log, ...numbers(written, written + 5));
      written += 5;
      if (random(4) === 0) {
        // As after a kill: the old one gets no further, a new one begins from what is stored.
        void runner.stop();
        await runner.ended;
        runner = start(log, sink);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => sink.rows.length >= written);
    expect(sink.rows).toEqual(numbers(0, written));
  });

  it('begins anew, aloud, when the log is another one', async () => {
    const warnings: string[] = [];
    const sink = new MemorySink();
    const old = new MemoryLog({ logId: 'old' });
    await pin(old, ...numbers(0, 5));
    const first = start(old, sink);
    await until(() => sink.rows.length === 5);
    await first.stop();
    const other = new MemoryLog({ logId: 'new' });
    await pin(other, 'a', 'b');
    start(other, sink, { warn: (m) => warnings.push(m) });
    await until(() => sink.rows.includes('b'));
    expect(sink.rows).toEqual(['a', 'b']);
    expect(sink.resets).toBe(1);
    expect(warnings.join()).toContain('it was made from event log old, and this is new');
  });

  it('begins anew when its checkpoint lies beyond the end of the log', async () => {
    const warnings: string[] = [];
    const sink = new MemorySink();
    const log = new MemoryLog({ logId: 'same' });
    await pin(log, ...numbers(0, 5));
    const first = start(log, sink);
    await until(() => sink.rows.length === 5);
    await first.stop();
    const restored = new MemoryLog({ logId: 'same' });
    await pin(restored, 'a');
    start(restored, sink, { warn: (m) => warnings.push(m) });
    await until(() => sink.rows.includes('a'));
    expect(sink.rows).toEqual(['a']);
    expect(warnings.join()).toContain('beyond the end of the log');
  });

  it('stops writing when somebody else moves the checkpoint, and takes up from there', async () => {
    const log = new MemoryLog();
    const sink = new MemorySink();
    await pin(log, 'a');
    start(log, sink);
    start(log, sink);
    await pin(log, ...numbers(0, 50));
    await until(() => sink.rows.length >= 51);
    expect(sink.rows).toEqual(['a', ...numbers(0, 50)]);
  });

  it('passes over types without a handler and still moves on', async () => {
    const log = new MemoryLog();
    const sink = new MemorySink();
    await log.append(
      'worker-a',
      [
        {
          id: randomUUID(),
          event: { type: 'WorkerLost', data: SAMPLES.WorkerLost } satisfies BerthEvent,
          cause: { correlationId: 'c', causationId: 'c' },
        },
      ],
      'any',
    );
    start(log, sink);
    await until(() => sink.checkpoint !== undefined);
    expect(sink.rows).toEqual([]);
  });
});
