import type { Geometry } from '#domain/geometry.js';
import type { Contract } from '#domain/placement-terms.js';
import type { WorkerState } from '#domain/worker/state.js';
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
  contract: Contract,
  order: OffloadOrder,
): number | undefined {
  const { ramBytes, cardBytes } = readsByPlace(geometry, contract, order);
  const cards = worker.devices.filter((d) => contract.devices.includes(d.deviceId));
  const inRam = ramBytes === 0 ? 0 : secondsPerToken(ramBytes, ramBytesPerSecond(worker, contract.threads));
  if (inRam === undefined) return undefined;
  if (cardBytes === 0 || cards.length === 0) return inRam;
  const cardRate = Math.min(...cards.map((d) => d.memoryGBps ?? SLOW_CARD_GBPS)) * 1e9;
  const onCard = cardBytes / (DECODE_SHARE * cardRate);
  return inRam === 0 ? onCard + TOKEN_SECONDS : inRam + onCard;
}
