import { isObject, textOf, type Json } from './describing.js';

/** Labels by the storage type that most bytes of a safetensors file have. */
const BY_TYPE: Readonly<Record<string, string>> = {
  F64: 'F32',
  F32: 'F32',
  BF16: 'BF16',
  F16: 'F16',
  F8_E4M3: 'FP8',
  F8_E5M2: 'FP8',
  I8: 'INT8',
  U8: 'INT8',
};

/**
 * Label of a safetensors folder: what its config says of its quantization (`AWQ-4BIT`, `FP8`, `MXFP4`), else the type
 * that its weights are stored in.
 */
export function labelOfConfig(config: Json | undefined, mainType: string): string {
  const quantization = config?.['quantization_config'] ?? config?.['compression_config'];
  if (isObject(quantization)) {
    const label = labelOfQuantization(quantization);
    if (label !== undefined) return label;
  }
  return BY_TYPE[mainType] ?? (mainType === 'none' ? 'unknown' : mainType);
}

function labelOfQuantization(said: Json): string | undefined {
  const method = textOf(said['quant_method'])?.toLowerCase() ?? '';
  switch (method) {
    case 'bitsandbytes':
      return said['load_in_8bit'] === true ? 'BNB-8BIT' : 'BNB-4BIT';
    case 'fp8':
    case 'fbgemm_fp8':
      return 'FP8';
    case 'mxfp4':
      return 'MXFP4';
    case 'modelopt':
      return /nvfp4|fp4/i.test(textOf(said['quant_algo']) ?? '') ? 'NVFP4' : 'FP8';
    case 'compressed-tensors':
    case 'compressed_tensors':
      return labelOfGroups(said);
    case '':
      return undefined;
    default: {
      const bits = said['bits'] ?? said['w_bit'] ?? said['nbits'];
      const name = method.replace(/[^a-z0-9]/g, '').toUpperCase();
      return typeof bits === 'number' ? `${name}-${bits}BIT` : name;
    }
  }
}

function labelOfGroups(said: Json): string {
  const groups = isObject(said['config_groups']) ? Object.values(said['config_groups']) : [];
  for (const group of groups) {
    const weights = isObject(group) ? group['weights'] : undefined;
    if (!isObject(weights) || typeof weights['num_bits'] !== 'number') continue;
    const bits = weights['num_bits'];
    if (weights['type'] === 'float') return bits === 8 ? 'FP8' : bits === 4 ? 'NVFP4' : `CT-${bits}BIT`;
    return bits === 8 ? 'INT8' : `CT-${bits}BIT`;
  }
  return 'CT';
}
