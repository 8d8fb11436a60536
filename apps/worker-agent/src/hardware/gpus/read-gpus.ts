import { platform } from 'node:os';
import { parseAmdSmi, parseRocmSmi } from './amd.js';
import { parseApple } from './apple.js';
import type { GpuReading } from './gpu-reading.js';
import { NVIDIA_FIELDS, type NvidiaField, parseNvidia, unknownField } from './nvidia-csv.js';
import { parseNvidiaXml } from './nvidia-xml.js';
import { runTool, type RunTool } from './tool.js';

export interface Gpus {
  readonly readings: readonly GpuReading[];
  /** Tools that are installed and did not answer within 5 s, or failed: what they would have said is unknown. */
  readonly silent: readonly string[];
}

/** Every accelerator of the machine, by the tools of its makers. */
export async function readGpus(run: RunTool = runTool, system: string = platform()): Promise<Gpus> {
  const found = await Promise.all([
    readNvidia(run),
    readAmd(run),
    ...(system === 'darwin' ? [readApple(run)] : []),
  ]);
  return {
    readings: found.flatMap((one) => one.readings),
    silent: found.flatMap((one) => one.silent),
  };
}

const nothing: Gpus = { readings: [], silent: [] };
const silentOf = (tool: string): Gpus => ({ readings: [], silent: [tool] });

/** Which fields this machine's driver knows is asked once. */
let known: readonly NvidiaField[] = NVIDIA_FIELDS;
export const nvidiaFields = (): readonly NvidiaField[] => known;

async function readNvidia(run: RunTool): Promise<Gpus> {
  let fields = run === runTool ? known : NVIDIA_FIELDS;
  for (;;) {
    const answer = await run('nvidia-smi', [
      `--query-gpu=${fields.join(',')}`,
      '--format=csv,noheader,nounits',
    ]);
    if (answer.kind === 'absent') return nothing;
    if (answer.kind === 'said') {
      if (run === runTool) known = fields;
      const cards = parseNvidia(answer.text, fields);
      const whole = cards.filter((card) => !card.partitioned).map(({ partitioned: _, ...card }) => card);
      if (whole.length === cards.length) return { readings: whole, silent: [] };
      return withParts(whole, cards, run);
    }
    const unknown = unknownField(answer.text);
    const fewer = fields.filter((field) => field !== unknown);
    if (fewer.length === fields.length) return silentOf('nvidia-smi');
    fields = fewer;
  }
}

/** Cards that are handed out in parts are not devices themselves: their parts are. */
async function withParts(
  whole: readonly GpuReading[],
  cards: readonly GpuReading[],
  run: RunTool,
): Promise<Gpus> {
  const [report, listing] = await Promise.all([run('nvidia-smi', ['-q', '-x']), run('nvidia-smi', ['-L'])]);
  if (report.kind !== 'said') return { readings: whole, silent: ['nvidia-smi -q -x'] };
  const parts = parseNvidiaXml(report.text, listing.kind === 'said' ? listing.text : '')
    .filter(({ device }) => device.partOf !== undefined)
    .map((part): GpuReading => {
      const card = cards.find(({ device }) => device.uuid === part.device.partOf?.uuid);
      const capability = card?.device.computeCapability;
      return capability === undefined
        ? part
        : { ...part, device: { ...part.device, computeCapability: capability } };
    });
  return { readings: [...whole, ...parts], silent: [] };
}

async function readAmd(run: RunTool): Promise<Gpus> {
  const statics = await run('amd-smi', ['static', '--json']);
  if (statics.kind === 'said') {
    const [metrics, processes] = await Promise.all([
      run('amd-smi', ['metric', '--json']),
      run('amd-smi', ['process', '--json']),
    ]);
    const text = (answer: typeof metrics) => (answer.kind === 'said' ? answer.text : '');
    return {
      readings: parseAmdSmi(statics.text, text(metrics), text(processes)),
      silent: metrics.kind === 'said' ? [] : ['amd-smi'],
    };
  }
  const older = await run('rocm-smi', [
    '--showuniqueid',
    '--showproductname',
    '--showmeminfo',
    'vram',
    '--showuse',
    '--showtemp',
    '--showpower',
    '--json',
  ]);
  if (older.kind === 'said') return { readings: parseRocmSmi(older.text), silent: [] };
  const silent = [
    ...(statics.kind === 'silent' ? ['amd-smi'] : []),
    ...(older.kind === 'silent' ? ['rocm-smi'] : []),
  ];
  return { readings: [], silent };
}

async function readApple(run: RunTool): Promise<Gpus> {
  const [sysctl, pages] = await Promise.all([
    run('sysctl', ['hw.memsize', 'machdep.cpu.brand_string', 'iogpu.wired_limit_mb']),
    run('vm_stat', []),
  ]);
  // An unknown name makes sysctl fail after it has printed the others.
  if (sysctl.kind === 'absent') return nothing;
  const readings = parseApple(sysctl.text, pages.kind === 'said' ? pages.text : '');
  return { readings, silent: pages.kind === 'silent' ? ['vm_stat'] : [] };
}
