import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GIB, MIB } from '#domain/units.js';
import { busyCores, sumOfTicks } from './busy.js';
import { readTicksByCpu } from './busy-cores.js';
import { parseCpuList, readCpu } from './cpu.js';
import { mountPoints } from './drives.js';
import { readMemory } from './memory.js';
import type { ReadText } from './read-text.js';

/** The files of a recorded machine by their paths. */
const tree = (name: string): ReadonlyMap<string, string> =>
  new Map(
    readFileSync(join(import.meta.dirname, 'fixtures', `${name}.tree`), 'utf8')
      .split(/^=== /m)
      .slice(1)
      .map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1)]),
  );
const reader =
  (files: ReadonlyMap<string, string>): ReadText =>
  (path) =>
    files.get(path);
const machine = (name: string) => {
  const read = reader(tree(name));
  return { cpu: readCpu(read), memory: readMemory(read) };
};

describe('the limits of a recorded machine', () => {
  it('virtual, with both versions of cgroups: the one that has the controller binds', () => {
    const { cpu, memory } = machine('virtual-hybrid');
    expect(memory).toMatchObject({
      totalBytes: 20 * GIB,
      usedBytes: 3 * GIB,
      availableBytes: 17 * GIB,
      swapBytes: 0,
    });
    expect(cpu).toEqual({
      physicalCores: 2,
      topology: [
        { cpu: 0, core: 0, node: 0 },
        { cpu: 1, core: 1, node: 0 },
      ],
    });
  });

  it('a container that sees its own group as the root', () => {
    const { cpu, memory } = machine('container-v2');
    expect(memory).toMatchObject({
      totalBytes: 4 * GIB,
      usedBytes: 1.5 * GIB,
      swapBytes: 0,
      swapUsedBytes: 0,
    });
    expect(cpu.physicalCores).toBe(2);
  });

  it('a container of version 1 that is named by a path which it does not see', () => {
    const { cpu, memory } = machine('container-v1');
    expect(memory).toMatchObject({
      totalBytes: 6 * GIB,
      usedBytes: GIB,
      swapBytes: 2 * GIB,
      swapUsedBytes: GIB / 2,
    });
    expect(cpu.physicalCores).toBe(3);
    expect(cpu.topology).toHaveLength(16);
  });

  it('two sockets, bound to one: its cores, their siblings once, their memory node and their last cache', () => {
    const { cpu } = machine('two-sockets');
    expect(cpu).toEqual({
      physicalCores: 2,
      topology: [
        { cpu: 2, core: 2, node: 1 },
        { cpu: 3, core: 3, node: 1 },
        { cpu: 6, core: 2, node: 1 },
        { cpu: 7, core: 3, node: 1 },
      ],
      lastCacheBytes: 36 * MIB,
    });
  });

  it('nested groups: the tightest of each resource, wherever it is set', () => {
    const { cpu, memory } = machine('nested-slices');
    expect(memory).toMatchObject({ totalBytes: 8 * GIB, usedBytes: 2 * GIB, swapBytes: GIB });
    expect(cpu.physicalCores).toBe(4);
  });
});

describe('any file of the system', () => {
  it('may be missing or hold anything: the reading is whole all the same', () => {
    const names = ['virtual-hybrid', 'container-v2', 'container-v1', 'two-sockets', 'nested-slices'];
    fc.assert(
      fc.property(
        fc.constantFrom(...names),
        fc.array(fc.tuple(fc.nat(), fc.option(fc.string()))),
        (name, changes) => {
          const files = new Map(tree(name));
          for (const [at, text] of changes) {
            const path = [...files.keys()][at % files.size] ?? '';
            if (text === null) files.delete(path);
            else files.set(path, text);
            if (files.size === 0) break;
          }
          const cpu = readCpu(reader(files));
          expect(cpu.physicalCores).toBeGreaterThanOrEqual(1);
          expect(Number.isSafeInteger(cpu.physicalCores)).toBe(true);
          const memory = readMemory(reader(files));
          for (const bytes of Object.values(memory) as number[]) {
            expect(Number.isFinite(bytes)).toBe(true);
            expect(bytes).toBeGreaterThanOrEqual(0);
          }
          readTicksByCpu(reader(files));
        },
      ),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        parseCpuList(text);
        mountPoints(text);
        readTicksByCpu(() => text);
      }),
    );
  });
});

describe('the work of the processors', () => {
  const stat = (user: number, idle: number) =>
    readTicksByCpu(() => `cpu  9 0 0 9 0\ncpu0 ${user} 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 ${idle} 0 0 0 0 0 0\n`);
  it('is in cores: of all, and of what is not ours', () => {
    const before = sumOfTicks(stat(100, 100));
    const now = sumOfTicks(stat(250, 150));
    if (before === undefined || now === undefined) throw new Error('the lines were not read');
    expect(busyCores(before, now, 50)).toEqual({ all: 1.5, foreign: 1, percent: 75 });
    expect(busyCores(now, now, 0)).toBeUndefined();
    expect(sumOfTicks(readTicksByCpu(() => undefined))).toBeUndefined();
    expect(sumOfTicks(readTicksByCpu(() => 'cpu  1 1\ncpu0 1 1\n'))).toBeUndefined();
  });
});

it('mount points are read with blanks in them, the longest first', () => {
  const text = '1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /mnt/my\\040disk rw - ext4 /dev/b rw';
  expect(mountPoints(text)).toEqual(['/mnt/my disk', '/']);
});
