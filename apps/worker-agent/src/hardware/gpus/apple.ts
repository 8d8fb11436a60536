import { deviceId } from '#domain/ids.js';
import type { GpuReading } from './gpu-reading.js';

/** The system keeps the rest of unified memory for itself unless `iogpu.wired_limit_mb` says otherwise. */
const USUAL_SHARE = 0.75;
const SMALL_SHARE = 2 / 3;
const SMALL_BYTES = 36 * 1024 ** 3;

/**
 * Apple's unified memory as a device: `sysctl hw.memsize machdep.cpu.brand_string iogpu.wired_limit_mb` (lines of
 * `name: value`) and `vm_stat` (pages of a size that its first line gives). What it holds counts as RAM too.
 */
export function parseApple(sysctl: string, vmStat: string): readonly GpuReading[] {
  const said = (name: string) =>
    new RegExp(`^${name.replaceAll('.', '\\.')}: (.+)$`, 'm').exec(sysctl)?.[1]?.trim();
  const memory = Number(said('hw.memsize'));
  const brand = said('machdep.cpu.brand_string') ?? '';
  if (!Number.isSafeInteger(memory) || memory <= 0 || !brand.startsWith('Apple')) return [];
  const wiredMb = Number(said('iogpu.wired_limit_mb'));
  const totalBytes =
    Number.isFinite(wiredMb) && wiredMb > 0
      ? Math.min(memory, wiredMb * 1024 ** 2)
      : Math.floor(memory * (memory <= SMALL_BYTES ? SMALL_SHARE : USUAL_SHARE));
  const usedBytes = usedOf(vmStat);
  return [
    {
      device: { deviceId: deviceId('metal-0'), kind: 'metal', name: brand, totalBytes, sharesRam: true },
      ...(usedBytes === undefined ? {} : { usedBytes: Math.min(usedBytes, totalBytes) }),
    },
  ];
}

/** Wired, active and compressed pages: what cannot be had without writing something out. */
function usedOf(vmStat: string): number | undefined {
  const page = Number(/page size of (\d+) bytes/.exec(vmStat)?.[1]);
  const pages = ['Pages wired down', 'Pages active', 'Pages occupied by compressor'].map((name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)\\.?$`, 'm').exec(vmStat)?.[1]),
  );
  const total = pages.reduce((sum, n) => sum + n, 0) * page;
  return Number.isFinite(total) && total > 0 ? total : undefined;
}
