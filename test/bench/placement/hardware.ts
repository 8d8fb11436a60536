import { deviceId } from '#domain/ids.js';
import type { LoadModel, SimBox, SimModel } from '#placement/simulate/model.js';
import { Random } from '#placement/simulate/random.js';

export const GB = 1e9;

export interface Hardware {
  readonly name: string;
  readonly boxes: readonly SimBox[];
}

const box = (name: string, gb: number, cacheGb: number): SimBox => ({
  name,
  devices: [{ deviceId: deviceId(`${name}-card`), totalBytes: gb * GB }],
  fileCacheBytes: cacheGb * GB,
});

/** One card per box. `cacheGb`: host RAM that keeps the files last read, per box. */
export const hardwareOf = (name: string, sizesGb: readonly number[], cacheGb = 0): Hardware => ({
  name: cacheGb > 0 ? `${name}, ${cacheGb} GB RAM tier` : name,
  boxes: sizesGb.map((gb, i) => box(`box${i}`, gb, cacheGb)),
});

export const HARDWARE = {
  '48': hardwareOf('48 GB', [48]),
  '96': hardwareOf('96 GB', [96]),
  '192': hardwareOf('192 GB', [192]),
  '4x48': hardwareOf('4 × 48 GB', [48, 48, 48, 48]),
  mixed: hardwareOf('24 + 48 + 96 GB', [24, 48, 96]),
  '96+ram': hardwareOf('96 GB', [96], 128),
} as const;

export type HardwareName = keyof typeof HARDWARE;

export const LOAD_RATES = {
  disk: { startSeconds: 2, bytesPerSecond: 1.5 * GB },
  ram: { startSeconds: 0.6, bytesPerSecond: 12 * GB },
} as const;

/** The nth load of a model takes the same in every run of a seed, whatever the policy did before. */
export function loadModel(noise: readonly number[], seed: number): LoadModel {
  return {
    ...LOAD_RATES,
    noise: (model, nth) => new Random(seed).fork(`load ${model} ${nth}`).pick(noise),
  };
}

/** A card's memory rate, and the share of it that decoding reaches: seconds per token as in `spec` of the libs. */
const CARD_BYTES_PER_SECOND = 900 * GB;
const DECODE_SHARE = 0.68;
const TOKEN_MS = 5;
/** A prompt token costs a hundredth to a thirtieth of an output token on such cards. */
const PROMPT_MS_PER_GB = 0.04;
/** Cache, buffers and the process beside the weights. */
const BESIDE_SHARE = 0.12;
const BESIDE_BYTES = 0.6 * GB;

export const SLOTS = 4;

/** A model by the size of its file; the rates follow from it. */
export function simModel(key: SimModel['modelKey'], fileGb: number): SimModel {
  const fileBytes = Math.round(fileGb * GB);
  return {
    modelKey: key,
    fileBytes,
    cardBytes: Math.round(fileBytes * (1 + BESIDE_SHARE) + BESIDE_BYTES),
    slots: SLOTS,
    promptMsPerToken: 0.05 + PROMPT_MS_PER_GB * fileGb,
    decodeMsPerToken: TOKEN_MS + (1000 * fileBytes) / (DECODE_SHARE * CARD_BYTES_PER_SECOND),
  };
}
