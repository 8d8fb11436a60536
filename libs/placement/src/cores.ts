import type { ResidentId } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { ResidentActivity } from './contract.js';
import type { EffectiveSettings } from './settings.js';
import { memo } from './memo.js';

/** Measured bytes per second at 1, 2, 3 … cores. */
export type BandwidthCurve = readonly number[];

/** Below this gain per core one more core is not worth having. */
const WORTHWHILE_GAIN = 0.03;

export interface Cores {
  /** Physical cores that engines may use: one is kept for the system on machines with 3 or more. */
  readonly usable: number;
  /** Usable cores that no loading or serving resident holds, and no other program uses. */
  readonly free: number;
  /** The same by the numbers of their processors, where the machine's topology is known; those to be taken first first. */
  readonly cpus?: { readonly usable: readonly number[]; readonly free: readonly number[] };
}

/** What was measured of a machine's memory, by the number of cores that read it. */
export const bandwidthCurveOf = ({
  memoryBandwidth,
}: Pick<WorkerState, 'memoryBandwidth'>): BandwidthCurve | undefined =>
  memoryBandwidth?.byCoresGBps && inBytes(memoryBandwidth.byCoresGBps);

const inBytes = memo((byCoresGBps: readonly number[]): BandwidthCurve =>
  byCoresGBps.map((rate) => rate * 1e9),
);

type Uses = ReadonlyMap<ResidentId, Pick<ResidentActivity, 'callsInFlight'>>;

/** Whose claim binds now, among those with weights in RAM: a resident on a card draws on the common pool. */
export function claimsCores(resident: Resident, activity: Uses): boolean {
  if (resident.contract.gpuLayers > 0 && resident.contract.cpuMoeLayers === 0) return false;
  return resident.phase !== 'ready' || (activity.get(resident.residentId)?.callsInFlight ?? 0) > 0;
}

/** Processors that a resident is bound to now. */
export const boundTo = (resident: Resident): readonly number[] | undefined =>
  resident.cores ?? resident.contract.cores;

/** @param without a resident whose own claim does not count */
export function coresOf(worker: WorkerState, activity: Uses, without?: ResidentId): Cores {
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
  // From the last one on: systems put their own work on the first.
  const cpus = worker.cpuTopology ? onePerCore(worker.cpuTopology).slice(0, usable) : [];
  const taken = new Set<number>();
  let uncounted = 0;
  for (const resident of worker.residents.values()) {
    if (resident.residentId === without || !claimsCores(resident, activity)) continue;
    const bound = boundTo(resident);
    if (bound && cpus.length > 0) for (const cpu of bound) taken.add(cpu);
    else uncounted += resident.contract.threads;
  }
  if (cpus.length === 0) return { usable, free: Math.max(0, usable - uncounted) };
  const unclaimed = cpus.filter((cpu) => !taken.has(cpu));
  const busy = busyCoresOf(worker);
  const quiet = unclaimed.filter((cpu) => !busy.has(cpu));
  // On a machine that is busy all over, a core that is shared is better than none.
  const left = quiet.length === 0 ? unclaimed.slice(0, 1) : quiet;
  const free = left.slice(0, Math.max(0, left.length - uncounted));
  return { usable, free: free.length, cpus: { usable: cpus, free } };
}

/** Cores, by their first processor, on any processor of which other programs work for over half of the time. */
function busyCoresOf({ busyCpus = [], cpuTopology = [] }: WorkerState): ReadonlySet<number> {
  if (busyCpus.length === 0) return NONE;
  const firstOf = firstByCpu(cpuTopology);
  return new Set(busyCpus.map((cpu) => firstOf.get(cpu) ?? cpu));
}

const NONE: ReadonlySet<number> = new Set();

type Topology = NonNullable<WorkerState['cpuTopology']>;

/** The first processor of the core of each. */
const firstByCpu = memo((topology: Topology): ReadonlyMap<number, number> => {
  const firstOfCore = new Map<number, number>();
  for (const { cpu, core } of topology) firstOfCore.set(core, Math.min(cpu, firstOfCore.get(core) ?? cpu));
  return new Map(topology.map(({ cpu, core }) => [cpu, firstOfCore.get(core) ?? cpu]));
});

/** The first processor of every physical core, the last core first: a hyperthread sibling is no extra core. */
const onePerCore = memo((topology: Topology): readonly number[] =>
  [...new Set(firstByCpu(topology).values())].sort((a, b) => b - a),
);

/** So many of the free ones, then of the others; in rising order. */
export function pickCpus({ usable, free }: NonNullable<Cores['cpus']>, count: number): readonly number[] {
  const others = usable.filter((cpu) => !free.includes(cpu));
  return [...free, ...others].slice(0, count).sort((a, b) => a - b);
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
  const bound = (threads: number): { readonly cores?: readonly number[] } =>
    cores.cpus ? { cores: pickCpus(cores.cpus, threads) } : {};
  if (typeof cpuCores === 'object') {
    return { ok: true, threads: Math.max(1, cpuCores.length), cores: cpuCores, why: 'pinned to these cores' };
  }
  if (cpuCores !== undefined) {
    const threads = Math.max(1, cpuCores);
    return { ok: true, threads, ...bound(threads), why: 'pinned count' };
  }
  if (!weightsInRam) {
    const pool = Math.max(1, Math.floor(worker.physicalCores / 4));
    const threads = Math.min(cores.usable, pool + cpuPriority);
    // One pool for all of them, at the end that claims of weights in RAM come to last.
    const cpus = cores.cpus?.usable.slice(-threads).sort((a, b) => a - b);
    const binds = cpus && worker.physicalCores > 2;
    return { ok: true, threads, ...(binds ? { cores: cpus } : {}), why: 'share of the common pool' };
  }
  const floor = floorCores(settings, curve);
  if (cores.free < floor) {
    const have = `${cores.free} of ${cores.usable} cores are free`;
    return { ok: false, reason: `${have}, and weights in RAM need ${floor}; the others load or serve` };
  }
  if (worker.physicalCores <= 2) return { ok: true, threads: 1, why: 'one thread on a small machine' };
  const wanted = curve ? worthwhileCores(curve) + cpuPriority : cores.free;
  const threads = Math.max(1, Math.min(cores.free, wanted));
  return { ok: true, threads, ...bound(threads), why: 'free physical cores' };
}

function floorCores(settings: Pick<EffectiveSettings, 'cpuFloorCores'>, curve?: BandwidthCurve): number {
  if (settings.cpuFloorCores !== undefined) return settings.cpuFloorCores;
  if (!curve || curve.length === 0) return 1;
  const half = Math.max(...curve) / 2;
  const enough = curve.findIndex((rate) => rate >= half);
  return enough < 0 ? 1 : enough + 1;
}
