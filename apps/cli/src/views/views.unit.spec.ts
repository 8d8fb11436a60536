import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceRow, FolderRow, ModelRow, ResidentRow, WorkerRow } from '../client/rows.js';
import { accuracyText } from './accuracy-view.js';
import { modelsText } from './models-view.js';
import { roomText, statusText } from './status-view.js';

const GIB = 1024 ** 3;
const name = fc.string({ minLength: 1, maxLength: 80, unit: 'grapheme-ascii' });
const bytes = fc.integer({ min: 0, max: 999 * GIB });
const device: fc.Arbitrary<DeviceRow> = fc.record(
  { deviceId: name, name, totalBytes: bytes, limitBytes: bytes, residentBytes: bytes, foreignBytes: bytes },
  { requiredKeys: ['deviceId', 'residentBytes'] },
);
const worker: fc.Arbitrary<WorkerRow> = fc.record(
  {
    workerId: name,
    name,
    lost: fc.boolean(),
    physicalCores: fc.integer({ min: 1, max: 512 }),
    coresLimit: fc.integer({ min: 1, max: 512 }),
    devices: fc.array(device, { maxLength: 3 }),
  },
  { requiredKeys: ['workerId', 'lost', 'devices'] },
);
const resident: fc.Arbitrary<ResidentRow> = fc.record(
  {
    residentId: name,
    workerId: name,
    workerName: name,
    modelKey: name,
    artifact: name,
    phase: fc.constantFrom('planned', 'loading', 'ready'),
    leaving: fc.constant({ reason: 'evict' }),
    contextTokens: fc.integer({ min: 256, max: 1_048_576 }),
    slots: fc.integer({ min: 1, max: 64 }),
    memory: fc.array(
      fc.record({ deviceId: name, bytes, basis: fc.constantFrom('measured' as const, 'planned' as const) }),
      { maxLength: 2 },
    ),
    readyAt: fc.constant('2026-01-01T00:00:00.000Z'),
  },
  { requiredKeys: ['residentId', 'workerId', 'phase', 'memory'] },
);

const folder: fc.Arbitrary<FolderRow> = fc.record(
  {
    workerId: name,
    usedBytes: bytes,
    limitBytes: bytes,
    limitTier: fc.constantFrom('designation', 'setting'),
    freeBytes: bytes,
    roomBytes: bytes,
  },
  { requiredKeys: ['workerId', 'usedBytes'] },
);

const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

describe('status', () => {
  const base = {
    address: 'http://127.0.0.1:8080',
    health: { status: 'ok', version: '0.1.0', degraded: [] },
    queue: [],
    nowMs: Date.parse('2026-01-01T01:00:00.000Z'),
  };

  it('fits 100 columns whatever is loaded, and ends no line with blanks', () => {
    fc.assert(
      fc.property(
        fc.array(worker, { maxLength: 3 }),
        fc.array(resident, { maxLength: 4 }),
        folder,
        fc.integer({ min: 80, max: 100 }),
        (workers, residents, disk, columns) => {
          const folders = workers.map(({ workerId }) => ({ ...disk, workerId }));
          const text = statusText({ ...base, views: { workers, residents, folders }, columns });
          expect(widest(text)).toBeLessThanOrEqual(columns);
          for (const { phase } of residents) expect(text).toMatch(new RegExp(`${phase}|leaving`));
        },
      ),
    );
  });

  it('shows what a device holds, what others use, and the room that a limit leaves', () => {
    const row = { deviceId: 'ram', totalBytes: 32 * GIB, foreignBytes: 8 * GIB, residentBytes: 4 * GIB };
    expect(roomText(row)).toBe(
      '[####~~~~~~~~....................] models 4.00 GiB, others 8.00 GiB, room 20.00 GiB',
    );
    expect(roomText({ ...row, limitBytes: 6 * GIB })).toMatch(/room 2\.00 GiB$/);
    expect(roomText({ ...row, limitBytes: GIB })).toMatch(/room 0 B$/);
    expect(roomText({ deviceId: 'ram', totalBytes: GIB, residentBytes: 0 })).toMatch(/others not read yet$/);
  });

  it('never draws a bar of another length, and hides nothing that is there', () => {
    fc.assert(
      fc.property(device, (row) => {
        const bar = /^\[([#~.]*)\]/.exec(roomText(row))?.[1];
        if (row.totalBytes === undefined) expect(bar).toBeUndefined();
        else expect([bar?.length, bar?.includes('#')]).toEqual([32, row.residentBytes > 0]);
      }),
    );
  });

  it('marks a planned figure, says what is degraded, who is away, and what waits for how long', () => {
    const text = statusText({
      ...base,
      health: {
        ...base.health,
        status: 'degraded',
        degraded: ['The agent of vm is not connected.'],
        workers: [{ id: 'w', name: 'vm', connected: false }],
      },
      views: {
        workers: [
          {
            workerId: 'w',
            name: 'vm',
            lost: false,
            physicalCores: 4,
            coresLimit: 2,
            devices: [],
          },
        ],
        folders: [
          {
            workerId: 'w',
            usedBytes: 30 * GIB,
            limitBytes: 40 * GIB,
            limitTier: 'setting',
            freeBytes: 120 * GIB,
            roomBytes: 10 * GIB,
          },
        ],
        residents: [
          {
            residentId: 'r',
            workerId: 'w',
            modelKey: 'a/b',
            artifact: 'Q4',
            phase: 'loading',
            memory: [{ deviceId: 'ram', bytes: GIB, basis: 'planned' }],
          },
        ],
      },
      queue: [
        { callId: '1', modelKey: 'a/b', phase: 'loading', waitedSeconds: 12.4 },
        { callId: '2', modelKey: 'a/b', phase: 'waiting', waitedSeconds: 3 },
      ],
    });
    expect(text).toContain('8080: degraded\n  ! The agent of vm is not connected.');
    expect(text).toContain(
      'worker vm: agent not connected, 4 cores (limit 2)\n' +
        '  disk: models 30.00 GiB, limit 40.00 GiB (admin), free 120.00 GiB, pull up to 10.00 GiB',
    );
    expect(text).toMatch(/a\/b +Q4 +loading +~1\.00 GiB$/m);
    expect(text).toContain('2 calls wait, the longest for 12 s:\n  a/b: 2');
  });

  it('shows the rest when the views are away', () => {
    const text = statusText({ ...base, views: 'Postgres does not answer.' });
    expect(text).toContain('The views cannot be read: Postgres does not answer.');
    expect(text).toContain('No call waits.');
  });
});

describe('models', () => {
  const model = (more: Partial<ModelRow>): ModelRow => ({
    workerId: 'w',
    modelKey: 'a/b',
    kind: 'chat',
    smoke: false,
    artifacts: [{ label: 'Q4_K_M', bytes: 3 * GIB, trainedContextTokens: 8192 }],
    residents: [],
    ...more,
  });

  it('show the size of what would be loaded, the context that is, and what is broken', () => {
    const text = modelsText([
      model({ residents: [{ phase: 'ready', contextTokens: 4096 }] }),
      model({ modelKey: 'c', artifacts: [{ label: 'Q8', bytes: 1, broken: 'cut off at 7 bytes' }] }),
      model({ modelKey: 'd', smoke: true, residents: [{ phase: 'loading' }] }),
    ]);
    expect(text).toMatch(/^a\/b +chat +Q4_K_M +3\.00 GiB +yes +4096$/m);
    expect(text).toMatch(/^c +chat +Q8 \(broken\) +1 B +no$/m);
    expect(text).toMatch(/^d +chat, smoke +Q4_K_M +3\.00 GiB +loading +8192$/m);
    expect(text).toContain('c Q8 is broken: cut off at 7 bytes');
  });

  it('say what an artifact lacks, what is never offered, and what a marker said wrongly', () => {
    const correction = { fact: 'kind', said: 'chat', found: 'embedding', reason: 'the header names bert' };
    const text = modelsText([
      model({
        artifacts: [
          { label: 'F16', bytes: 1, complete: false, missing: ['b.gguf', 'c.gguf'] },
          { label: 'pickle', bytes: 1, format: 'pickle', broken: 'its weights are pickled' },
        ],
        marker: { corrections: [correction] },
      }),
    ]);
    expect(text).toMatch(/^a\/b +chat +F16 \(in… \(never\) +1 B/m);
    expect(text).toContain('a/b F16 is incomplete: it lacks b.gguf, c.gguf');
    expect(text).toContain('a/b is not offered as pickle: its weights are pickled');
    expect(text).toContain('a/b: its marker says kind chat, and embedding holds: the header names bert');
  });

  it('show what a model can do, and what lies beside it', () => {
    const text = modelsText([
      model({
        abilities: ['vision', 'tools'],
        trainedContextTokens: 32_768,
        artifacts: [{ label: 'Q4_K_M', bytes: 3 * GIB }],
        attachments: [
          { role: 'projector', label: 'mmproj-F16', bytes: GIB },
          { role: 'adapter', label: 'sql', bytes: 5, broken: 'it is for bert, and its base is llama' },
        ],
      }),
      model({ modelKey: 'c' }),
    ]);
    expect(text).toMatch(/^a\/b +chat +Q4_K_M +3\.00 GiB +no +32768$/m);
    expect(text).toMatch(
      /^a\/b: vision, tools; projector mmproj-F16 \(1\.00 GiB\); adapter sql \(broken\)$/m,
    );
    expect(text).toContain('a/b: its adapter sql is broken: it is for bert, and its base is llama');
    expect(text).not.toContain('c:');
  });

  it('are one line each, on however many workers they lie', () => {
    const text = modelsText([
      model({}),
      model({
        workerId: 'v',
        artifacts: [
          { label: 'Q4_K_M', bytes: 1 },
          { label: 'Q8_0', bytes: 2 },
        ],
        residents: [{ phase: 'ready', contextTokens: 512 }],
      }),
    ]);
    expect(text.split('\n')).toHaveLength(2);
    expect(text).toMatch(/a\/b +chat +Q4_K_M, Q8_0 +3\.00 GiB +yes +512/);
  });

  it('fit 100 columns', () => {
    fc.assert(
      fc.property(name, name, (modelKey, label) => {
        const text = modelsText([
          model({
            modelKey,
            kind: 'embedding',
            artifacts: [{ label, bytes: 1 }],
            abilities: ['vision', 'audio', 'tools', 'reasoning', 'transcribe', 'speak', 'moe'],
            attachments: [{ role: 'projector', label, bytes: 1 }],
          }),
        ]);
        expect(widest(text)).toBeLessThanOrEqual(100);
      }),
    );
  });

  it('say how to get one when there is none', () => {
    expect(modelsText([])).toMatch(/berth pull OWNER\/REPO/);
  });
});

describe('the accuracy of sizes', () => {
  it('shows mean and worst error by model, class and build, within 100 columns', () => {
    const row = {
      workerId: 'w',
      modelKey: 'owner/a-model-with-a-rather-long-name-that-must-be-cut',
      artifact: 'Q4_K_M',
      classKey: 'Q4_K_M||gl0|cm0|f16|ctx8192|np1|ub512|fa|built-in@3.21.1',
      engineBuild: 'built-in@3.21.1',
      loads: 12,
      meanError: 0.0042,
      worstError: 0.25,
      mostAboveBytes: 3 * 1024 ** 2,
      mostBelowBytes: 1024 ** 2,
    };
    const text = accuracyText([row, { ...row, mostAboveBytes: -1, mostBelowBytes: 5 * 1024 ** 2 }]);
    // What tells one class from another is not cut away.
    expect(text).toContain('Q4_K_M RAM 8192×1 f16');
    expect(text).toContain('0.42 %');
    expect(text).toContain('25.0 %');
    expect(text).toContain('3.0 MiB above');
    expect(text).toContain('5.0 MiB below');
    expect(text.split('\n').every((line) => line.length <= 100)).toBe(true);
  });

  it('says when nothing was measured', () => {
    expect(accuracyText([])).toContain('Nothing was loaded yet');
  });
});
