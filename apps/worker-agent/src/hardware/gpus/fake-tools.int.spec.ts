import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import { eventually } from '../../engines/test-bench.js';
import { FakeTools, oneCard, recordedText } from './fake-tools.js';
import { readGpus } from './read-gpus.js';
import { runTool } from './tool.js';
import { GpuWatch } from './watch-gpus.js';

let tools: FakeTools;
const path = process.env['PATH'];
beforeEach(() => {
  tools = new FakeTools();
  process.env['PATH'] = tools.path;
});
afterEach(() => {
  process.env['PATH'] = path;
  tools.remove();
});

/** Which fields the driver knows is remembered for the process: each test asks as if it were the first. */
const read = () => readGpus((command, args, deadlineMs) => runTool(command, args, deadlineMs), 'linux');

describe('tools of drivers as programs', () => {
  it('of three generations are read, each as far as it tells', async () => {
    tools.nvidia(['memory.reserved', 'compute_cap']).recorded('lines.csv', 'nvidia-470.csv');
    expect((await read()).readings).toMatchObject([
      { device: { name: 'Tesla T4', totalBytes: 15109 * MIB }, usedBytes: 3 * MIB },
    ]);
    tools.nvidia().recorded('lines.csv', 'nvidia-535.csv');
    const { readings } = await read();
    expect(readings).toHaveLength(2);
    expect(readings[1]).not.toHaveProperty('utilizationPercent');
    tools.recorded('lines.csv', 'nvidia-570-no-memory.csv');
    expect(await read()).toEqual({ readings: [], silent: [] });
  });

  it('of AMD in both releases', async () => {
    tools.json('rocm-smi', { '--showuniqueid': 'rocm-smi-6.json' });
    expect((await read()).readings.map(({ usedBytes }) => usedBytes)).toEqual([297127936, undefined]);
    tools.json('amd-smi', {
      static: 'amd-smi-6-static.json',
      metric: 'amd-smi-6-metric.json',
      process: 'amd-smi-6-process.json',
    });
    expect((await read()).readings).toMatchObject([
      { usedBytes: 4100 * MIB, processes: [{ pid: 4242, bytes: 4194304000 }] },
    ]);
  });
});

describe('a watch over cards', () => {
  it('follows what the driver prints, knows nothing of a driver that hangs, and hears it again', async () => {
    const said = oneCard(1027, [[4242, 1000]]);
    tools.nvidia().print('lines.csv', said.lines).print('report.xml', said.report);
    const { readings: devices } = await read();
    expect(devices).toHaveLength(1);
    const deviceId = devices[0]?.device.deviceId ?? '';
    let aheadMs = 0;
    const now = () => performance.now() + aheadMs;
    const watch = new GpuWatch(devices, now);
    try {
      await eventually('its processes are known', () => watch.latest()[0]?.processes !== undefined);
      expect(watch.latest()[0]).toMatchObject({
        usedBytes: 1027 * MIB,
        utilizationPercent: 7,
        processes: [{ pid: 4242, bytes: 1000 * MIB }],
        device: { driverReservedBytes: 356 * MIB, computeCapability: '8.9' },
      });
      const more = oneCard(3000, []);
      const beforeMs = now();
      tools.print('lines.csv', more.lines);
      await eventually('the rise is seen', () => watch.latest()[0]?.usedBytes === 3000 * MIB);
      // The processes are those of a moment when less was used.
      expect(watch.latest()[0]?.listedBytes).toBe(1027 * MIB);
      tools.print('report.xml', more.report);
      await eventually('its end is seen', () => watch.since(deviceId, beforeMs).pids?.size === 0);
      expect(watch.since(deviceId, now() + 60_000)).toEqual({});

      const unknown = oneCard('[N/A]', [[4242, '[N/A]']]);
      tools.print('lines.csv', unknown.lines).print('report.xml', unknown.report);
      await eventually('what is not told is unknown, not nothing', () => {
        const [latest] = watch.latest();
        return latest?.usedBytes === undefined && latest?.processes?.[0]?.bytes === undefined;
      });

      tools.print('lines.csv', said.lines).print('report.xml', said.report);
      await eventually('it is known again', () => watch.latest()[0]?.usedBytes === 1027 * MIB);
      tools.hang(true);
      const hangsSinceMs = now();
      await eventually('it says no more', () => now() - hangsSinceMs > 1000);
      aheadMs = 5000;
      expect(watch.latest()).toEqual([{ device: devices[0]?.device }]);
      tools.hang(false);
      await eventually('it is heard again', () => watch.latest()[0]?.usedBytes === 1027 * MIB);
    } finally {
      watch.stop();
    }
  });

  it('gives the parts of a card, each with its own processes', async () => {
    tools
      .nvidia()
      .recorded('lines.csv', 'nvidia-550-mig.csv')
      .recorded('listing.txt', 'nvidia-550-mig-list.txt')
      .print('report.xml', recordedText('nvidia-550-mig.xml'));
    const { readings: devices } = await read();
    const watch = new GpuWatch(devices);
    try {
      const since = performance.now();
      await eventually('the parts are heard of', () =>
        devices.every(({ device }) => watch.since(device.deviceId, since).pids !== undefined),
      );
      const latest = watch.latest();
      expect(latest.map(({ device }) => device.partOf?.profile)).toEqual(['3g.20gb', '3g.20gb']);
      expect(latest.map(({ usedBytes }) => usedBytes)).toEqual([5012 * MIB, undefined]);
      expect(latest.map(({ processes }) => processes?.length)).toEqual([1, 0]);
    } finally {
      watch.stop();
    }
  });
});
