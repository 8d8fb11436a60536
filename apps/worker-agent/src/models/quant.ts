/** What a GGUF's file name says: its quant label and its place in a set of shards. */
export interface NamedFile {
  /** Without quant, shard and ending: what is left of the name. */
  readonly base: string;
  readonly label?: string;
  readonly shard?: { readonly index: number; readonly count: number };
}

const SHARD = /-(\d{5})-of-(\d{5})$/;
const QUANT =
  /(?:^|[-._])((?:UD-)?(?:I?Q\d_(?:[0-9]|NL|XXS|XS|[SM]|K)(?:_(?:[0-9]_[0-9]|XXS|XS|XXL|XL|[SML]))?(?:_[0-9])?|TQ[12]_0|BF16|F16|F32|FP16|FP32|MXFP4(?:_MOE)?|NVFP4))(?=$|[-._])/gi;

/** @param name the file name, with or without `.gguf`. */
export function readName(name: string): NamedFile {
  const stem = name.replace(/\.(?:gguf|safetensors)$/i, '');
  const shardMatch = SHARD.exec(stem);
  const whole = shardMatch === null ? stem : stem.slice(0, shardMatch.index);
  // Where a name holds several, the last is the quant of the weights.
  const quant = [...whole.matchAll(QUANT)].at(-1);
  const base =
    quant === undefined ? whole : whole.slice(0, quant.index) + whole.slice(quant.index + quant[0].length);
  return {
    base,
    ...(quant?.[1] === undefined ? {} : { label: canonical(quant[1]) }),
    ...(shardMatch === null ? {} : { shard: { index: Number(shardMatch[1]), count: Number(shardMatch[2]) } }),
  };
}

const canonical = (label: string) => label.toUpperCase().replace(/^FP(16|32)$/, 'F$1');

/** Labels by llama.cpp's `general.file_type`, for files whose name says nothing. */
const FILE_TYPES: Readonly<Record<number, string>> = {
  0: 'F32',
  1: 'F16',
  2: 'Q4_0',
  3: 'Q4_1',
  7: 'Q8_0',
  8: 'Q5_0',
  9: 'Q5_1',
  10: 'Q2_K',
  11: 'Q3_K_S',
  12: 'Q3_K_M',
  13: 'Q3_K_L',
  14: 'Q4_K_S',
  15: 'Q4_K_M',
  16: 'Q5_K_S',
  17: 'Q5_K_M',
  18: 'Q6_K',
  19: 'IQ2_XXS',
  20: 'IQ2_XS',
  21: 'Q2_K_S',
  22: 'IQ3_XS',
  23: 'IQ3_XXS',
  24: 'IQ1_S',
  25: 'IQ4_NL',
  26: 'IQ3_S',
  27: 'IQ3_M',
  28: 'IQ2_S',
  29: 'IQ2_M',
  30: 'IQ4_XS',
  31: 'IQ1_M',
  32: 'BF16',
  36: 'TQ1_0',
  37: 'TQ2_0',
  38: 'MXFP4_MOE',
  39: 'NVFP4',
};
export const labelOfFileType = (fileType: number): string | undefined => FILE_TYPES[fileType];

/** Best first: full precision, then by the bits that are left. */
const ORDER: readonly RegExp[] = [
  /^F32$/,
  /^BF16$/,
  /^F16$/,
  /^(Q8|FP8|INT8|[A-Z]+-8BIT)/,
  /^(Q6|[A-Z]+-6BIT)/,
  /^(Q5|[A-Z]+-5BIT)/,
  /^(Q4|MXFP4|NVFP4|[A-Z]+-4BIT)/,
  /^IQ4/,
  /^(Q3|[A-Z]+-3BIT)/,
  /^IQ3/,
  /^(Q2|[A-Z]+-2BIT)/,
  /^IQ2/,
  /^(TQ|IQ1|Q1)/,
];

/** Lower is better; what is unknown comes last. */
export function qualityRank(label: string): number {
  const plain = label.replace(/^UD-/, '');
  const rank = ORDER.findIndex((pattern) => pattern.test(plain));
  return rank < 0 ? ORDER.length : rank;
}
