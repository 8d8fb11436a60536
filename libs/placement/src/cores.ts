import type { Geometry } from '#domain/geometry.js';
import type { ResidentId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { ResidentActivity } from './contract.js';
import type { EffectiveSettings } from './settings.js';
import { bytesPerToken } from './weights.js';

/** Measured bytes per second at 1, 2, 3 … cores. */
export type BandwidthCurve = readonly number[];

/** Below this gain per core one more core is not worth having. */
const WORTHWHILE_GAIN = 0.03;

export interface Cores {
  /** Physical cores that engines may use: one is kept for the system on machines with 3 or more. */
  readonly usable: number;
  /** Usable cores that no loading or serving resident holds. */
  readonly free: number;
}

export function coresOf(worker: WorkerState, activity: ReadonlyMap<ResidentId, ResidentActivity>): Cores {
  const physical = Math.max(1, worker.physicalCores);
  const kept = physical >= 3 ? physical - 1 : physical;
  const usable = Math.max(
    1,
    Math.floor(
      Math.min(
        kept,
        worker.limits.designation.get('cores') ?? kept,
        worker.limits.setting.get('cores') ?? kept,
      ),
    ),
  );
  let held = 0;
  for (const resident of worker.residents.values()) {
    const serves = (activity.get(resident.residentId)?.callsInFlight ?? 0) > 0;
    // A resident without weights in RAM draws on the common pool, and claims no core of its own.
    if (resident.contract.gpuLayers > 0 && resident.contract.cpuMoeLayers === 0) continue;
    if (resident.phase !== 'ready' || serves) held += resident.contract.threads;
  }
  return { usable, free: Math.max(0, usable - held) };
}

/** The smallest count beyond which the curve gains less than 3 % per core. */
export function worthwhileCores(curve: BandwidthCurve): number {
  for (let cores = 1; cores < curve.length; cores++) {
    const here = curve[cores - 1] ?? 0;
    const next = curve[cores] ?? 0;
    if (next < here * (1 + WORTHWHILE_GAIN)) return cores;
  }
  return Math.max(1, curve.length);
}

export type CoreClaim =
  | { readonly ok: true; readonly threads: number; readonly cores?: readonly number[]; readonly why: string }
  | { readonly ok: false; readonly reason: string };

/**
 * Threads of a plan. Nothing in RAM: a quarter of the machine's cores. Weights in RAM: what the curve makes worthwhile,
 * else every free core; on machines of one or two cores a single thread, since an engine that spins at its barriers
 * collapses when it shares them.
 */
export function claimCores(
  worker: WorkerState,
  cores: Cores,
  weightsInRam: boolean,
  settings: Pick<EffectiveSettings, 'cpuCores' | 'cpuFloorCores' | 'cpuPriority'>,
  curve?: BandwidthCurve,
): CoreClaim {
  const { cpuCores, cpuPriority = 0 } = settings;
  if (typeof cpuCores === 'object') {
    return { ok: true, threads: Math.max(1, cpuCores.length), cores: cpuCores, why: 'pinned to these cores' };
  }
  if (cpuCores !== undefined) return { ok: true, threads: Math.max(1, cpuCores), why: 'pinned count' };
  if (!weightsInRam) {
    const pool = Math.max(1, Math.floor(worker.physicalCores / 4));
    return { ok: true, threads: Math.min(cores.usable, pool + cpuPriority), why: 'share of the common pool' };
  }
  const floor = floorCores(settings, curve);
  if (cores.free < floor) {
    const have = `${cores.free} of ${cores.usable} cores are free`;
    return { ok: false, reason: `${have}, and weights in RAM need ${floor}; the others load or serve` };
  }
  if (worker.physicalCores <= 2) return { ok: true, threads: 1, why: 'one thread on a small machine' };
  const wanted = curve ? worthwhileCores(curve) + cpuPriority : cores.free;
  return { ok: true, threads: Math.max(1, Math.min(cores.free, wanted)), why: 'free physical cores' };
}

function floorCores(settings: Pick<EffectiveSettings, 'cpuFloorCores'>, curve?: BandwidthCurve): number {
  if (settings.cpuFloorCores !== undefined) return settings.cpuFloorCores;
  if (!curve || curve.length === 0) return 1;
  const half = Math.max(...curve) / 2;
  const enough = curve.findIndex((rate) => rate >= half);
  return enough < 0 ? 1 : enough + 1;
}

/** Tokens per second of a measured curve: bandwidth at n cores ÷ bytes read per token. */
export const ramTokensPerSecond = (curve: BandwidthCurve, cores: number, geometry: Geometry): number =>
  (curve[Math.min(cores, curve.length) - 1] ?? 0) / bytesPerToken(geometry);
