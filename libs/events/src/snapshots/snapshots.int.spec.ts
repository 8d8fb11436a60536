import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WorkerEvent } from '#domain/events/index.js';
import { workerId } from '#domain/ids.js';
import { catalogue, type TypedStream } from '../catalogue.js';
import { MemoryLog } from '../testing/memory-log.js';
import { SAMPLES } from '../testing/samples.js';
import { foldStream, Snapshots } from './snapshots.js';

describe('snapshots of streams', () => {
  let folder: string;
  let log: MemoryLog;
  const said: string[] = [];
  const stream = catalogue.worker(workerId('w1'));
  const snapshots = () => new Snapshots({ folder, warn: (message) => said.push(message) });

  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), 'berth-snapshots-')), 'snapshots');
    log = new MemoryLog();
    said.length = 0;
  });
  afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

  const append = async (to: MemoryLog, count: number, from = 0) => {
    for (let n = from; n < from + count; n++) {
      const type =
        (['PlacementDecided', 'LoadStarted', 'PinSet', 'ForeignUseChanged'] as const)[n % 4] ?? 'PinSet';
      const data = {
        ...SAMPLES[type],
        residentId: `r${n >> 2}`,
        decisionId: `d${n >> 2}`,
        modelKey: `m${n}`,
      };
      const id = `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
      const event = { type, data } as unknown as WorkerEvent;
      await to.append('worker-w1', [{ id, event, cause: { correlationId: id, causationId: id } }], 'any');
    }
  };
  /** How many events were handed to the fold. */
  const counted = () => {
    let events = 0;
    const counting: TypedStream<ReturnType<typeof stream.fold.initial>, WorkerEvent> = {
      name: stream.name,
      fold: {
        ...stream.fold,
        evolve: (state, recorded) => ((events += 1), stream.fold.evolve(state, recorded)),
      },
    };
    return { counting, events: () => events };
  };

  it('give the state that the whole stream gives, from the events since alone; deleting them changes nothing', async () => {
    await append(log, 300);
    await foldStream(log, stream, snapshots());
    await append(log, 10, 300);
    const { counting, events } = counted();
    const folded = await foldStream(log, counting, snapshots());
    expect(events()).toBe(10);
    expect(folded).toEqual(await foldStream(log, stream));
    rmSync(folder, { recursive: true });
    expect(await foldStream(log, stream, snapshots())).toEqual(folded);
    expect(statSync(join(folder, readdirSync(folder)[0] ?? '')).mode & 0o777).toBe(0o600);
    expect(said).toEqual([]);
  });

  it('count for no other log, no other version of the fold, and no log that was taken back', async () => {
    await append(log, 300);
    await foldStream(log, stream, snapshots());
    const other = new MemoryLog({ logId: '00000000-0000-4000-8000-00000000000b' });
    await append(other, 300);
    expect(await snapshots().read(other, stream)).toBeUndefined();
    const newer = { ...stream, fold: { ...stream.fold, version: stream.fold.version + 1 } };
    expect(await snapshots().read(log, newer)).toBeUndefined();
    const shorter = new MemoryLog();
    await append(shorter, 40);
    await append(shorter, 300, 1000);
    expect(await snapshots().read(shorter, stream)).toBeUndefined();
    expect(await snapshots().read(log, stream)).toBeDefined();
  });

  it('are set aside with a message when they are damaged, and made anew', async () => {
    await append(log, 300);
    await foldStream(log, stream, snapshots());
    const file = join(folder, readdirSync(folder)[0] ?? '');
    const bytes = readFileSync(file);
    bytes[bytes.length - 20]! ^= 1;
    writeFileSync(file, bytes);
    expect(await foldStream(log, stream, snapshots())).toEqual(await foldStream(log, stream));
    expect(said).toEqual([expect.stringMatching(/snapshot of worker-w1 is damaged: it was set aside as/)]);
    expect(readdirSync(folder).filter((name) => name.endsWith('.damaged'))).toHaveLength(1);
    expect(await snapshots().read(log, stream)).toBeDefined();
  });

  it('that cannot be written are said, and the fold goes on', async () => {
    await append(log, 300);
    writeFileSync(folder, 'a file where the folder should be');
    expect(await foldStream(log, stream, snapshots())).toEqual(await foldStream(log, stream));
    expect(said).toEqual([expect.stringContaining('could not be written')]);
  });
});
