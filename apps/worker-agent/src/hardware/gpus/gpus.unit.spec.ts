import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GIB, MIB } from '#domain/units.js';
import { parseAmdSmi, parseRocmSmi } from './amd.js';
import { parseApple } from './apple.js';
import { oneCard } from './fake-tools.js';
import { NVIDIA_FIELDS, parseNvidia, unknownField } from './nvidia-csv.js';
import { parseNvidiaXml, partIds } from './nvidia-xml.js';
import { readGpus } from './read-gpus.js';
import type { RunTool, ToolAnswer } from './tool.js';

const recorded = (name: string) => readFileSync(join(import.meta.dirname, 'fixtures', name), 'utf8');
const said = (text: string): ToolAnswer => ({ kind: 'said', text });

describe('nvidia-smi in lines', () => {
  it('reads devices in MiB and leaves out what the driver does not know', () => {
    const [full, sparse] = parseNvidia(recorded('nvidia-535.csv'));
    expect(full).toEqual({
      device: {
        deviceId: 'GPU-1a2b3c4d-0000-0000-0000-000000000001',
        kind: 'cuda',
        name: 'NVIDIA H100 PCIe',
        uuid: 'GPU-1a2b3c4d-0000-0000-0000-000000000001',
        totalBytes: 81559 * MIB,
        driverReservedBytes: 641 * MIB,
        computeCapability: '9.0',
      },
      partitioned: false,
      usedBytes: 1027 * MIB,
      utilizationPercent: 12,
      temperatureCelsius: 41,
      powerWatts: 78.42,
    });
    expect(sparse).toMatchObject({ usedBytes: 5 * MIB, temperatureCelsius: 37 });
    expect(Object.keys(sparse ?? {})).not.toContain('utilizationPercent');
    expect(Object.keys(sparse ?? {})).not.toContain('powerWatts');
  });

  it.each(['[N/A]', 'N/A', '[Not Supported]', '[Insufficient Permissions]', ''])(
    'takes "%s" in any field for what is not known',
    (nothing) => {
      const line = oneCard(500, []).lines.trim().split(', ');
      for (const at of NVIDIA_FIELDS.keys()) {
        const [reading] = parseNvidia(line.map((field, i) => (i === at ? nothing : field)).join(', '));
        // Without an id or a size there is no device.
        if (['uuid', 'memory.total'].includes(NVIDIA_FIELDS[at] ?? '')) expect(reading).toBeUndefined();
        else expect(Object.values({ ...reading, ...reading?.device })).not.toContain(0);
        if (NVIDIA_FIELDS[at] === 'memory.used') expect(reading).not.toHaveProperty('usedBytes');
        if (NVIDIA_FIELDS[at] === 'compute_cap')
          expect(reading?.device).not.toHaveProperty('computeCapability');
      }
    },
  );

  it('leaves out a device whose size is unknown, and noise', () => {
    expect(parseNvidia(recorded('nvidia-570-no-memory.csv'))).toEqual([]);
    expect(parseNvidia('No devices were found\n')).toEqual([]);
  });

  it('asks an older driver again without the fields that it does not know', async () => {
    const asked: string[] = [];
    const run: RunTool = (command, args) => {
      if (command !== 'nvidia-smi') return Promise.resolve({ kind: 'absent' });
      const fields = args[0] ?? '';
      asked.push(fields);
      for (const field of ['memory.reserved', 'compute_cap']) {
        if (fields.includes(field)) {
          return Promise.resolve({ kind: 'silent', text: `Field "${field}" is not a valid field to query.` });
        }
      }
      return Promise.resolve(said(recorded('nvidia-470.csv')));
    };
    const { readings, silent } = await readGpus(run, 'linux');
    expect(asked).toHaveLength(3);
    expect(silent).toEqual([]);
    expect(readings[0]).toMatchObject({
      device: { name: 'Tesla T4', totalBytes: 15109 * MIB },
      usedBytes: 3 * MIB,
    });
    expect(unknownField(recorded('nvidia-470-unknown-field.txt'))).toBe('memory.reserved');
  });
});

describe('the report of nvidia-smi', () => {
  it('of an older driver, with the memory of each process', () => {
    const [reading] = parseNvidiaXml(recorded('nvidia-470.xml'));
    expect(reading).toMatchObject({
      usedBytes: 1043 * MIB,
      powerWatts: 26.51,
      processes: [{ pid: 4242, bytes: 1037 * MIB }],
    });
    expect(Object.keys(reading?.device ?? {})).not.toContain('driverReservedBytes');
  });

  it('of a newer one: a process whose memory is not told has none that is known', () => {
    const [reading] = parseNvidiaXml(recorded('nvidia-535.xml'));
    expect(reading).toMatchObject({ device: { driverReservedBytes: 641 * MIB }, powerWatts: 78.42 });
    expect(reading?.processes).toEqual([{ pid: 100, bytes: 29000 * MIB }, { pid: 101 }]);
    expect(Object.keys(reading ?? {})).not.toContain('utilizationPercent');
  });

  it('that lists no processes at all does not say that there are none', () => {
    const { report } = oneCard(500, []);
    const listed = (processes: string) =>
      parseNvidiaXml(report.replace(/<processes>.*<\/processes>/, `<processes>${processes}</processes>`))[0];
    expect(listed('')?.processes).toEqual([]);
    expect(listed('N/A')).not.toHaveProperty('processes');
    expect(listed('N/A')?.usedBytes).toBe(500 * MIB);
  });

  it('of a card in parts: the parts are the devices, each with its own processes', async () => {
    const run: RunTool = (command, args) =>
      Promise.resolve(
        command !== 'nvidia-smi'
          ? { kind: 'absent' }
          : said(
              recorded(
                args[0] === '-q'
                  ? 'nvidia-550-mig.xml'
                  : args[0] === '-L'
                    ? 'nvidia-550-mig-list.txt'
                    : 'nvidia-550-mig.csv',
              ),
            ),
      );
    const { readings } = await readGpus(run, 'linux');
    expect(readings.map(({ device }) => device.deviceId)).toEqual([
      'MIG-aaaaaaaa-0000-5000-8000-000000000001',
      'MIG-aaaaaaaa-0000-5000-8000-000000000002',
    ]);
    expect(readings[0]).toMatchObject({
      device: {
        computeCapability: '8.0',
        totalBytes: 19968 * MIB,
        partOf: { uuid: 'GPU-5a1e0000-0000-0000-0000-00000000000a', profile: '3g.20gb' },
      },
      usedBytes: 5012 * MIB,
      processes: [{ pid: 700, bytes: 4987 * MIB }],
    });
    expect(readings[1]?.processes).toEqual([]);
    expect(Object.keys(readings[1] ?? {})).not.toContain('usedBytes');
  });

  it('that is cut off gives no card that is not whole', () => {
    const text = recorded('nvidia-535.xml');
    for (let at = 0; at < text.length; at += 97) {
      for (const { device } of parseNvidiaXml(text.slice(0, at))) expect(device.totalBytes).toBe(81559 * MIB);
    }
  });
});

describe('AMD', () => {
  it('rocm-smi of two releases, after a warning too', () => {
    expect(parseRocmSmi(recorded('rocm-smi-5.txt'))).toEqual([
      {
        device: {
          deviceId: 'amd-0x1234567890abcdef',
          kind: 'rocm',
          name: 'AMD Instinct MI210',
          uuid: '0x1234567890abcdef',
          totalBytes: 68702699520,
        },
        usedBytes: 10850304,
        utilizationPercent: 3,
        temperatureCelsius: 38,
        powerWatts: 39,
      },
    ]);
    const [mi300, sparse] = parseRocmSmi(recorded('rocm-smi-6.json'));
    expect(mi300).toMatchObject({ temperatureCelsius: 45, powerWatts: 132, usedBytes: 297127936 });
    expect(sparse).toEqual({
      device: {
        deviceId: 'amd-card1',
        kind: 'rocm',
        name: 'AMD GPU',
        uuid: 'card1',
        totalBytes: 17163091968,
      },
    });
  });

  it('amd-smi of two releases, with processes', () => {
    const of = (release: number) =>
      parseAmdSmi(
        ...(['static', 'metric', 'process'].map((part) => recorded(`amd-smi-${release}-${part}.json`)) as [
          string,
          string,
          string,
        ]),
      );
    expect(of(6)).toMatchObject([
      {
        device: { deviceId: 'amd-0x1234567890ABCDEF', name: 'AMD Instinct MI210', totalBytes: 65520 * MIB },
        usedBytes: 4100 * MIB,
        utilizationPercent: 12,
        powerWatts: 42,
        processes: [{ pid: 4242, bytes: 4194304000 }],
      },
    ]);
    const [w7900] = of(7);
    expect(w7900).toEqual({
      device: {
        deviceId: 'amd-0000:c3:00.0',
        kind: 'rocm',
        name: 'AMD Radeon PRO W7900',
        uuid: '0000:c3:00.0',
        totalBytes: 49136 * MIB,
      },
      temperatureCelsius: 50,
      processes: [],
    });
  });
});

describe('Apple', () => {
  it('offers of unified memory what the system lends to the graphics', () => {
    const [reading] = parseApple(recorded('apple-sysctl.txt'), recorded('apple-vm-stat.txt'));
    expect(reading).toEqual({
      device: {
        deviceId: 'metal-0',
        kind: 'metal',
        name: 'Apple M2 Max',
        totalBytes: 48 * GIB,
        sharesRam: true,
      },
      usedBytes: (800000 + 200000 + 24288) * 16384,
    });
    const limited = recorded('apple-sysctl.txt').replace('wired_limit_mb: 0', 'wired_limit_mb: 57344');
    expect(parseApple(limited, '')[0]).toEqual({
      device: {
        deviceId: 'metal-0',
        kind: 'metal',
        name: 'Apple M2 Max',
        totalBytes: 56 * GIB,
        sharesRam: true,
      },
    });
  });
});

describe('any parser', () => {
  const files = [
    'nvidia-535.csv',
    'nvidia-550-mig.xml',
    'rocm-smi-5.txt',
    'amd-smi-6-static.json',
    'apple-vm-stat.txt',
  ];
  const spoilt = fc
    .tuple(fc.constantFrom(...files), fc.nat(), fc.string(), fc.nat(40))
    .map(([name, at, words, cut]) => {
      const text = recorded(name);
      const i = at % text.length;
      return text.slice(0, i) + words + text.slice(i + cut);
    });

  it('never throws, and knows nothing rather than something wrong', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), spoilt, fc.json()), (text) => {
        const all = [
          ...parseNvidia(text, NVIDIA_FIELDS),
          ...parseNvidiaXml(text, text),
          ...parseRocmSmi(text),
          ...parseAmdSmi(text, text, text),
          ...parseApple(text, text),
        ];
        partIds(text);
        for (const { device, usedBytes, processes } of all) {
          expect(device.totalBytes).toBeGreaterThan(0);
          if (usedBytes !== undefined) expect(usedBytes).toBeGreaterThanOrEqual(0);
          for (const { bytes } of processes ?? [])
            if (bytes !== undefined) expect(bytes).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 300 },
    );
  });
});
