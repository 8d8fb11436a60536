import type { Geometry } from '#domain/geometry.js';
import type { DeviceId } from '#domain/ids.js';
import type { Contract } from '#domain/placement-terms.js';
import type { WorkerState } from '#domain/worker/state.js';
import { bandwidthCurveOf } from './cores.js';
import { between, blockSumsOf } from './block-sums.js';
import { bytesPerToken, offloadOf, type OffloadOrder } from './weights.js';

/** Share of the measured memory rate that decoding reaches, and what a token costs beside reading. */
const DECODE_SHARE = 0.68;
const TOKEN_SECONDS = 0.005;
/** A card whose rate nobody measured is taken for a slow one; such a figure is marked estimated. */
const SLOW_CARD_GBPS = 300;

/**
 * Seconds per output token before any measurement: bytes ÷ (0.68 · memory rate) + 5 ms.
 * @returns undefined when the memory rate was not measured.
 */
export const secondsPerToken = (bytes: number, bytesPerSecond: number | undefined): number | undefined =>
  bytesPerSecond === undefined || bytesPerSecond <= 0
    ? undefined
    : bytes / (DECODE_SHARE * bytesPerSecond) + TOKEN_SECONDS;

export function ramBytesPerSecond(
  worker: Pick<WorkerState, 'memoryBandwidth'>,
  threads: number,
): number | undefined {
  const curve = bandwidthCurveOf(worker);
  if (curve) return curve[Math.min(Math.max(1, threads), curve.length) - 1];
  const measured = worker.memoryBandwidth;
  return measured && Math.min(measured.allGBps, measured.oneCoreGBps * threads) * 1e9;
}

/** Bytes that one token reads in RAM and on cards. */
export function readsByPlace(
  geometry: Geometry,
  plan: { readonly gpuLayers: number; readonly cpuMoeLayers: number },
  order: OffloadOrder,
): { readonly ramBytes: number; readonly cardBytes: number } {
  const { firstBlock, outputOnCard } = offloadOf(geometry.blocks.length, plan.gpuLayers, order);
  const share = geometry.expertCount > 0 ? geometry.expertUsedCount / geometry.expertCount : 1;
  const { always, experts } = blockSumsOf(geometry);
  const expertsInRam = Math.min(geometry.blocks.length, Math.max(firstBlock, plan.cpuMoeLayers));
  let ramBytes = between(always, 0, firstBlock) + between(experts, 0, expertsInRam) * share;
  if (!outputOnCard)
    ramBytes +=
      (geometry.tiedOutput ? geometry.tokenEmbeddingBytes : geometry.outputBytes) + geometry.otherBytes;
  return { ramBytes, cardBytes: Math.max(0, bytesPerToken(geometry) - ramBytes) };
}

/** A plan's seconds per output token from the memory rates of where its weights lie. */
export function estimatedSecondsPerToken(
  worker: WorkerState,
  geometry: Geometry,
  place: Pick<Contract, 'devices' | 'gpuLayers' | 'cpuMoeLayers'>,
  threads: number,
  order: OffloadOrder,
): number | undefined {
  const { ramBytes, cardBytes } = readsByPlace(geometry, place, order);
  const inRam = ramBytes === 0 ? 0 : secondsPerToken(ramBytes, ramBytesPerSecond(worker, threads));
  if (inRam === undefined) return undefined;
  const slowest = slowestCardGBps(worker, place.devices);
  if (cardBytes === 0 || slowest === undefined) return inRam;
  const onCard = cardBytes / (DECODE_SHARE * (slowest * 1e9));
  return inRam === 0 ? onCard + TOKEN_SECONDS : inRam + onCard;
}

function slowestCardGBps({ devices }: WorkerState, used: readonly DeviceId[]): number | undefined {
  let slowest: number | undefined;
  for (const { deviceId, memoryGBps = SLOW_CARD_GBPS } of devices) {
    if (used.includes(deviceId) && !(slowest !== undefined && slowest <= memoryGBps)) slowest = memoryGBps;
  }
  return slowest;
}
