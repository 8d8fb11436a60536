import { describe, expect, it } from 'vitest';
import { GIB, MIB } from '#domain/units.js';
import { parseCpuList, readCpu } from './cpu.js';
import { anonymousBytes, readMemory } from './memory.js';

const files =
  (texts: Readonly<Record<string, string>>) =>
  (path: string): string | undefined =>
    texts[path];

const MEMINFO =
  'MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\nSwapTotal:       2097152 kB\n';

describe('host memory', () => {
  it('counts what is not available as used', () => {
    expect(readMemory(files({ '/proc/meminfo': MEMINFO }))).toEqual({
      totalBytes: 16 * GIB,
      usedBytes: 8 * GIB,
      availableBytes: 8 * GIB,
      swapBytes: 2 * GIB,
      swapUsedBytes: 0,
    });
  });

  it('takes the tightest limit of its cgroup and the parents as the machine, without file pages', () => {
    const reading = readMemory(
      files({
        '/proc/meminfo': MEMINFO,
        '/proc/self/cgroup': '0::/box/inner\n',
        '/sys/fs/cgroup/box/inner/memory.max': 'max\n',
        '/sys/fs/cgroup/box/memory.max': String(4 * GIB),
        '/sys/fs/cgroup/box/memory.current': String(3 * GIB),
        '/sys/fs/cgroup/box/memory.stat': `anon 1\ninactive_file ${GIB}\nactive_file ${GIB / 2}\n`,
      }),
    );
    expect(reading.totalBytes).toBe(4 * GIB);
    expect(reading.usedBytes).toBe(1.5 * GIB);
    expect(reading.availableBytes).toBe(2.5 * GIB);
  });

  it('ignores a cgroup limit above what the machine has', () => {
    const reading = readMemory(
      files({
        '/proc/meminfo': MEMINFO,
        '/proc/self/cgroup': '5:memory:/a\n',
        '/sys/fs/cgroup/memory/a/memory.limit_in_bytes': '9223372036854771712',
      }),
    );
    expect(reading.totalBytes).toBe(16 * GIB);
  });

  it('counts anonymous and locked pages of a process, and says undefined for one that is gone', () => {
    const read = files({
      '/proc/7/status': 'VmRSS:   9000 kB\nVmLck:    1024 kB\nRssAnon:    2048 kB\nRssFile:   6952 kB\n',
    });
    expect(anonymousBytes(7, read)).toBe(3 * MIB);
    expect(anonymousBytes(8, read)).toBeUndefined();
  });
});

describe('cores', () => {
  it('counts hyperthread siblings once and only allowed processors', () => {
    const texts: Record<string, string> = { '/proc/self/status': 'Cpus_allowed_list:\t0-3\n' };
    for (const [cpu, core] of [
      [0, 0],
      [1, 1],
      [2, 0],
      [3, 1],
    ] as const) {
      texts[`/sys/devices/system/cpu/cpu${cpu}/topology/core_id`] = `${core}\n`;
      texts[`/sys/devices/system/cpu/cpu${cpu}/topology/physical_package_id`] = '0\n';
    }
    expect(readCpu(files(texts)).physicalCores).toBe(2);
  });

  it('is bounded by the quota of the cgroup, and is never below one', () => {
    const texts = {
      '/proc/self/status': 'Cpus_allowed_list:\t0-7\n',
      '/proc/self/cgroup': '0::/box\n',
      '/sys/fs/cgroup/box/cpu.max': '50000 100000\n',
    };
    expect(readCpu(files(texts)).physicalCores).toBe(1);
  });

  it('reads lists of processors', () => {
    expect(parseCpuList('0-2,5,8-9')).toEqual([0, 1, 2, 5, 8, 9]);
    expect(parseCpuList('')).toEqual([]);
  });
});
