import type { GpuReading } from './gpu-reading.js';
import { parseNvidia } from './nvidia-csv.js';
import { parseNvidiaXml } from './nvidia-xml.js';
import { nvidiaFields, readGpus } from './read-gpus.js';
import { TOOL_DEADLINE_MS, ToolStream } from './tool.js';

export const GPU_EVERY_MS = 250;
const SLOW_EVERY_MS = 1000;
const END_OF_REPORT = '</nvidia_smi_log>';
const LONGEST_REPORT = 8 * 1024 * 1024;

interface Dated {
  readonly reading: GpuReading;
  readonly atMs: number;
}

/**
 * Keeps the newest reading of every accelerator. NVIDIA's tool prints by itself, memory four times a second and the
 * processes once; the other tools are asked once a second. What is older than 5 s is unknown.
 */
export class GpuWatch {
  private readonly memory = new Map<string, Dated>();
  private readonly details = new Map<string, Dated>();
  private readonly streams: readonly ToolStream[];
  private report: string[] = [];
  private reportLength = 0;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  /** @param devices as they were found at the start. */
  constructor(
    private readonly devices: readonly GpuReading[],
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    const nvidia = devices.some(({ device }) => device.kind === 'cuda');
    for (const reading of devices) this.memory.set(reading.device.deviceId, { reading, atMs: this.nowMs() });
    this.streams = nvidia
      ? [
          new ToolStream(
            'nvidia-smi',
            [
              `--query-gpu=${nvidiaFields().join(',')}`,
              '--format=csv,noheader,nounits',
              '-lms',
              String(GPU_EVERY_MS),
            ],
            (line) => this.hearMemory(line),
          ),
          new ToolStream('nvidia-smi', ['-q', '-x', '-lms', String(SLOW_EVERY_MS)], (line) =>
            this.hearReport(line),
          ),
        ]
      : [];
    if (devices.some(({ device }) => device.kind !== 'cuda')) this.askOthers();
  }

  /** One reading for each device that was found at the start; without figures where nothing was heard for 5 s. */
  latest(): readonly GpuReading[] {
    const since = this.nowMs() - TOOL_DEADLINE_MS;
    return this.devices.map(({ device }): GpuReading => {
      const memory = this.memory.get(device.deviceId);
      const details = this.details.get(device.deviceId);
      const fresh = memory !== undefined && memory.atMs >= since ? memory.reading : undefined;
      const detailed = details !== undefined && details.atMs >= since ? details.reading : undefined;
      return { ...detailed, ...fresh, device, ...processesOf(fresh, detailed) };
    });
  }

  /** What was heard of a device after a moment, on the clock that was given. */
  since(deviceId: string, momentMs: number): { usedBytes?: number; pids?: ReadonlySet<number> } {
    const heard = [this.memory, this.details].flatMap((map) => {
      const dated = map.get(deviceId);
      return dated === undefined || dated.atMs <= momentMs ? [] : [dated.reading];
    });
    const usedBytes = heard.find((reading) => reading.usedBytes !== undefined)?.usedBytes;
    const processes = heard.find((reading) => reading.processes !== undefined)?.processes;
    return {
      ...(usedBytes === undefined ? {} : { usedBytes }),
      ...(processes === undefined ? {} : { pids: new Set(processes.map(({ pid }) => pid)) }),
    };
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    for (const stream of this.streams) stream.stop();
  }

  private hearMemory(line: string): void {
    for (const { partitioned, ...reading } of parseNvidia(line, nvidiaFields())) {
      if (!partitioned) this.memory.set(reading.device.deviceId, { reading, atMs: this.nowMs() });
    }
  }

  private hearReport(line: string): void {
    this.report.push(line);
    this.reportLength += line.length;
    if (!line.includes(END_OF_REPORT) && this.reportLength < LONGEST_REPORT) return;
    const atMs = this.nowMs();
    for (const reading of parseNvidiaXml(this.report.join('\n'), this.listing)) {
      this.details.set(reading.device.deviceId, { reading, atMs });
      if (reading.device.partOf !== undefined) this.memory.set(reading.device.deviceId, { reading, atMs });
    }
    this.report = [];
    this.reportLength = 0;
  }

  /** The parts' own ids as they were found at the start, in the form of `nvidia-smi -L`. */
  private get listing(): string {
    const parts = this.devices.flatMap(({ device }) =>
      device.partOf ? [{ device, partOf: device.partOf }] : [],
    );
    const cards = [...new Set(parts.map(({ partOf }) => partOf.uuid))];
    return cards
      .flatMap((uuid) => [
        `GPU 0: card (UUID: ${uuid})`,
        ...parts
          .filter(({ partOf }) => partOf.uuid === uuid)
          .map(({ device, partOf }, i) => `  MIG ${partOf.profile} Device ${i}: (UUID: ${device.deviceId})`),
      ])
      .join('\n');
  }

  private askOthers(): void {
    void readGpus().then(({ readings }) => {
      const atMs = this.nowMs();
      for (const reading of readings) {
        if (reading.device.kind !== 'cuda') this.memory.set(reading.device.deviceId, { reading, atMs });
      }
      if (!this.stopped) this.timer = setTimeout(() => this.askOthers(), SLOW_EVERY_MS).unref();
    });
  }
}

/** Memory is told more often than processes: what these hold is to be compared with what was used when they were listed. */
const processesOf = (fresh: GpuReading | undefined, detailed: GpuReading | undefined) => {
  const from = fresh?.processes === undefined ? detailed : fresh;
  if (from?.processes === undefined) return {};
  const { processes, usedBytes } = from;
  return { processes, ...(from === fresh || usedBytes === undefined ? {} : { listedBytes: usedBytes }) };
};
