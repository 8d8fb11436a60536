import type { Attachment } from '#domain/events/catalog-events.js';

/** Sizes of a transformers folder, as its safetensors headers and its config give them. */
export interface FolderWeights {
  /** Packed integers of a compressed-tensors folder: unpacked they are four times as large. */
  readonly packedBytes: number;
  readonly fp8Bytes: number;
  /** Scales of quantised tensors: folded into the weights on loading. */
  readonly scaleBytes: number;
  /** Tensors that are loaded as they are. */
  readonly plainBytes: number;
}

/** Weights of a folder that was never loaded: packed × 4, FP8 × 2, scales 0, the rest as stored. */
export const folderWeightsBytes = (w: FolderWeights): number =>
  w.packedBytes * 4 + w.fp8Bytes * 2 + w.plainBytes;

export interface FolderCache {
  readonly layers: number;
  /** One entry per layer when the config has it: only attention entries bear a cache. */
  readonly layerTypes?: readonly string[];
  readonly kvHeads: number;
  readonly headDim: number;
  readonly dtypeBytes: number;
}

/** 2 · KV-bearing layers · kvHeads · headDim · dtypeBytes · ctx; 0 for a model without context. */
export function folderKvBytes(cache: FolderCache | undefined, contextTokens: number): number {
  if (!cache) return 0;
  const bearing = cache.layerTypes
    ? cache.layerTypes.filter((type) => type.includes('attention') && !type.includes('linear')).length
    : cache.layers;
  return 2 * bearing * cache.kvHeads * cache.headDim * cache.dtypeBytes * contextTokens;
}

/** An adapter is held in single precision beside the weights. */
export const adapterBytes = (parameters: number): number => parameters * 4;

/** An adapter by its parameters; a projector, and an adapter of unknown parameters, by its files. */
export const attachmentBytes = ({ role, parameters, files }: Attachment): number =>
  role === 'adapter' && parameters !== undefined
    ? adapterBytes(parameters)
    : files.reduce((sum, { bytes }) => sum + bytes, 0);
