import type { DecoderShape } from './decoder-shape.js';
import { decoder, type ModelParts } from './decoder.js';
import { tensorBytes } from './encode.js';
import { encoder, type EncoderShape } from './encoder.js';
import { withSeed, type Script } from './script.js';

export const PRESETS = [
  'chat-a',
  'chat-b',
  'endless',
  'think',
  'big',
  'moe',
  'hybrid',
  'windowed',
  'embed',
  'rerank',
  'smoke',
] as const;
export type Preset = (typeof PRESETS)[number];

export interface PresetOptions {
  readonly seed: number;
  readonly sizeMb?: number;
  readonly contextTokens?: number;
}

const SCRIPTS: Readonly<Partial<Record<Preset, Script>>> = {
  'chat-a': { answer: 'Hello from the first harbour: berth A is ready.' },
  'chat-b': { answer: 'Good evening, this second quay answers as B.' },
  endless: {
    answer: 'One two three four five six seven eight nine ten eleven twelve',
    endless: true,
  },
  think: {
    reasoning: 'First I read the tide table.',
    answer: 'High water comes at noon.',
  },
  big: { answer: 'One large ship has come alongside.' },
  moe: { answer: 'Many experts, of whom few were asked.' },
  hybrid: { answer: 'Some decks remember everything, others keep a summary.' },
  windowed: { answer: 'Only the latest ships are in sight.' },
  smoke: {
    answer:
      "Hello! I am Berth's own smoke model: tiny, real, and with just one answer. Pull another to hear more.",
  },
};

/** What a preset says; undefined for those that do not speak. */
export function scriptOf(preset: Preset, seed: number): Script | undefined {
  const script = SCRIPTS[preset];
  if (script === undefined || script.endless === true) return script;
  return { ...script, answer: withSeed(script.answer, seed) };
}

const SMALL: DecoderShape = {
  architecture: 'llama',
  width: 64,
  blocks: 2,
  heads: 2,
  kvHeads: 1,
  headSize: 32,
  feedForward: 128,
  contextTokens: 8192,
  type: 'F16',
};

/** Two blocks in three keep a state of fixed size, the third a cache. */
const HYBRID: DecoderShape = {
  ...SMALL,
  architecture: 'granitehybrid',
  blocks: 6,
  recurrent: { convKernel: 4, innerSize: 128, groups: 1, stateSize: 64, heads: 8, attentionEvery: 3 },
};

/** As the architecture has it, every sixth block sees the whole context. */
const WINDOWED: DecoderShape = {
  ...SMALL,
  architecture: 'gemma3',
  blocks: 6,
  windowTokens: 512,
};

const ENCODER: EncoderShape = {
  width: 64,
  blocks: 2,
  heads: 2,
  feedForward: 128,
  contextTokens: 512,
  type: 'F16',
  pooling: 'mean',
};

/** Header and tensors of a preset. */
export function presetParts(preset: Preset, options: PresetOptions): ModelParts {
  const context = options.contextTokens === undefined ? {} : { contextTokens: options.contextTokens };
  if (preset === 'embed' || preset === 'rerank') {
    const pooling = preset === 'embed' ? 'mean' : 'rank';
    return encoder({ ...ENCODER, ...context, pooling }, options.seed);
  }
  const script = scriptOf(preset, options.seed) ?? { answer: '' };
  return decoder({ ...shapeOf(preset, options.sizeMb), ...context }, script, options.seed);
}

function shapeOf(preset: Preset, sizeMb: number | undefined): DecoderShape {
  if (preset === 'big') return bigShape(sizeMb ?? 210);
  if (preset === 'hybrid') return HYBRID;
  if (preset === 'windowed') return WINDOWED;
  if (preset !== 'moe') return SMALL;
  const small: DecoderShape = {
    ...SMALL,
    architecture: 'qwen3moe',
    blocks: 4,
    feedForward: 64,
    experts: { count: 16, used: 4 },
  };
  return sizeMb === undefined ? small : bigMoeShape(sizeMb);
}

/** 32k context at 16 KiB of KV cache per token and 16 blocks: both weights and context matter beside each other. */
function bigShape(sizeMb: number): DecoderShape {
  const blocks = Math.min(80, Math.max(1, Math.round(sizeMb / 13)));
  const shape: DecoderShape = {
    architecture: 'llama',
    width: 1024,
    blocks,
    heads: 16,
    kvHeads: 4,
    headSize: 64,
    feedForward: 32,
    contextTokens: 32_768,
    type: 'Q8_0',
  };
  return { ...shape, feedForward: feedForwardFor(shape, sizeMb, 3) };
}

function bigMoeShape(sizeMb: number): DecoderShape {
  const experts = { count: 32, used: 4 };
  const shape: DecoderShape = {
    architecture: 'qwen3moe',
    width: 512,
    blocks: Math.min(48, Math.max(1, Math.round(sizeMb / 15))),
    heads: 8,
    kvHeads: 2,
    headSize: 64,
    feedForward: 32,
    contextTokens: 32_768,
    type: 'Q8_0',
    experts,
  };
  return { ...shape, feedForward: feedForwardFor(shape, sizeMb, 3 * experts.count) };
}

/** The feed-forward length, in steps of 32, at which the matrices alone reach the size. */
function feedForwardFor(shape: DecoderShape, sizeMb: number, matricesPerBlock: number): number {
  const { width, heads, kvHeads, headSize, blocks, type } = shape;
  const attention = 2 * tensorBytes(type, [width, heads * headSize + kvHeads * headSize]);
  const perBlock = (sizeMb * 1_000_000) / blocks - attention;
  const perStep = matricesPerBlock * tensorBytes(type, [width, 32]);
  return Math.max(1, Math.ceil(perBlock / perStep)) * 32;
}
