import { expect, it } from 'vitest';
import { deviceId } from '#domain/ids.js';
import { classKey, type PlacementClass } from '#domain/placement-terms.js';
import { classText } from './class-text.js';

const inRam: PlacementClass = {
  artifact: 'F16',
  devices: [],
  gpuLayers: 0,
  cpuMoeLayers: 0,
  kvType: 'f16',
  contextTokens: 8192,
  slots: 1,
  microBatch: 512,
  flashAttention: false,
  engineBuild: 'b1',
};

it('says a placement class in words, as its key has it', () => {
  expect(classText(classKey(inRam))).toBe('F16 · RAM · 8,192 tokens × 1 slot · KV cache f16');
  const onCards = {
    ...inRam,
    devices: [deviceId('GPU-0'), deviceId('GPU-1')],
    gpuLayers: 48,
    cpuMoeLayers: 12,
    slots: 2,
  };
  expect(classText(classKey(onCards))).toBe(
    'F16 · 48 layers on GPU-0 and GPU-1 · experts of 12 layers in RAM · 8,192 tokens × 2 slots · KV cache f16',
  );
  expect(classText('of another shape')).toBe('of another shape');
});
