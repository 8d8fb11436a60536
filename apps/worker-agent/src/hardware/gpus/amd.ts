import { deviceId } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { figure, type GpuProcess, type GpuReading, knownOf } from './gpu-reading.js';

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** JSON after whatever a tool prints before it (warnings of a missing library, for one). */
export function jsonIn(text: string): unknown {
  for (const start of [text.search(/[[{]/), 0]) {
    if (start < 0) continue;
    try {
      return JSON.parse(text.slice(start));
    } catch {
      // Cut off, or no JSON at all: unknown.
    }
  }
  return undefined;
}

/**
 * `rocm-smi --showmeminfo vram --showuniqueid --showproductname --showuse --showtemp --showpower --json`:
 * `{"card0": {"Unique ID": "0x…", "VRAM Total Memory (B)": "…", …}, "system": {…}}`. Names of fields changed between
 * releases (`Card series`, `Card Series`, `Device Name`); they are compared without regard to case.
 */
export function parseRocmSmi(text: string): readonly GpuReading[] {
  const cards = jsonIn(text);
  if (!isObject(cards)) return [];
  return Object.entries(cards).flatMap(([card, value]) => {
    if (!/^card\d+$/.test(card) || !isObject(value)) return [];
    const fields = new Map(Object.entries(value).map(([name, said]) => [name.toLowerCase(), said]));
    const text = (...names: readonly string[]) => {
      for (const name of names) {
        const said = fields.get(name);
        if (
          (typeof said === 'string' || typeof said === 'number') &&
          !/^(?:n\/a|unknown|none)?$/i.test(String(said).trim())
        )
          return String(said).trim();
      }
      return undefined;
    };
    const totalBytes = figure(text('vram total memory (b)'));
    if (totalBytes === undefined || totalBytes === 0) return [];
    const id = text('unique id') ?? text('pci bus') ?? card;
    return [
      reading(id, text('card series', 'device name', 'card model', 'market_name') ?? 'AMD GPU', totalBytes, {
        usedBytes: figure(text('vram total used memory (b)')),
        utilizationPercent: figure(text('gpu use (%)')),
        temperatureCelsius: figure(
          text('temperature (sensor edge) (c)', 'temperature (sensor junction) (c)'),
        ),
        powerWatts: figure(
          text('average graphics package power (w)', 'current socket graphics package power (w)'),
        ),
      }),
    ];
  });
}

/**
 * `amd-smi static --json`, `amd-smi metric --json` and `amd-smi process --json`: a list with an entry for each card, in
 * newer releases below `gpu_data`. A figure is a number, or `{"value", "unit"}`; what is not known is `"N/A"`.
 */
export function parseAmdSmi(statics: string, metrics: string, processes = ''): readonly GpuReading[] {
  const metricBy = new Map(entries(metrics).map((entry) => [entry['gpu'], entry]));
  const processBy = new Map(entries(processes).map((entry) => [entry['gpu'], entry]));
  return entries(statics).flatMap((entry) => {
    const asic = isObject(entry['asic']) ? entry['asic'] : {};
    const vram = isObject(entry['vram']) ? entry['vram'] : {};
    const bus = isObject(entry['bus']) ? entry['bus'] : {};
    const metric = metricBy.get(entry['gpu']) ?? {};
    const memory = isObject(metric['mem_usage']) ? metric['mem_usage'] : {};
    const totalBytes = bytesOf(memory['total_vram']) ?? bytesOf(vram['size']);
    if (totalBytes === undefined || totalBytes === 0) return [];
    const id = textOf(asic['asic_serial']) ?? textOf(bus['bdf']) ?? `gpu${String(entry['gpu'])}`;
    const usage = isObject(metric['usage']) ? metric['usage'] : {};
    const power = isObject(metric['power']) ? metric['power'] : {};
    const temperature = isObject(metric['temperature']) ? metric['temperature'] : {};
    const listed = processBy.get(entry['gpu'])?.['process_list'];
    return [
      reading(id, textOf(asic['market_name']) ?? 'AMD GPU', totalBytes, {
        usedBytes: bytesOf(memory['used_vram']),
        utilizationPercent: numberOf(usage['gfx_activity']),
        temperatureCelsius: numberOf(temperature['edge']) ?? numberOf(temperature['hotspot']),
        powerWatts: numberOf(power['socket_power']),
        processes: Array.isArray(listed) ? (listed as readonly unknown[]).flatMap(processOf) : undefined,
      }),
    ];
  });
}

function entries(text: string): readonly Json[] {
  const content = jsonIn(text);
  const list: unknown = isObject(content) ? (content['gpu_data'] ?? content['gpus']) : content;
  return Array.isArray(list) ? (list as readonly unknown[]).filter(isObject) : [];
}

function processOf(value: unknown): readonly GpuProcess[] {
  const info = isObject(value) && isObject(value['process_info']) ? value['process_info'] : value;
  if (!isObject(info)) return [];
  const pid = numberOf(info['pid']);
  if (pid === undefined || !Number.isInteger(pid)) return [];
  const usage = isObject(info['memory_usage']) ? info['memory_usage'] : {};
  const bytes = bytesOf(usage['vram_mem']) ?? bytesOf(info['mem_usage']);
  return [{ pid, ...(bytes === undefined ? {} : { bytes }) }];
}

const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1024,
  MB: MIB,
  MIB: MIB,
  GB: 1024 * MIB,
  GIB: 1024 * MIB,
};

/** A plain number is in MB, as the tools print it without a unit. */
function bytesOf(value: unknown): number | undefined {
  const amount = numberOf(value);
  const unit = isObject(value) ? textOf(value['unit']) : /[A-Za-z]+$/.exec(textOf(value) ?? '')?.[0];
  const factor = unit === undefined ? MIB : UNITS[unit.toUpperCase()];
  return amount === undefined || factor === undefined ? undefined : Math.round(amount * factor);
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' || typeof value === 'string'
    ? figure(String(value))
    : isObject(value)
      ? numberOf(value['value'])
      : undefined;

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value !== 'N/A' ? value : undefined;

const reading = (
  id: string,
  name: string,
  totalBytes: number,
  known:
    | { readonly [K in keyof Omit<GpuReading, 'device'>]-?: GpuReading[K] | undefined }
    | Record<string, unknown>,
): GpuReading => ({
  device: { deviceId: deviceId(`amd-${id}`), kind: 'rocm', name, uuid: id, totalBytes },
  ...knownOf(known as Record<string, unknown>),
});
