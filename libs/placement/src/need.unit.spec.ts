import { describe, expect, it } from 'vitest';
import type { Attachment } from '#domain/events/catalog-events.js';
import type { BlockKind, Geometry } from '#domain/geometry.js';
import { classKey, type Contract, type NeedTerm, placementClassOf } from '#domain/placement-terms.js';
import { deviceId, RAM } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import {
  blockCache,
  elementsPerCell,
  kvBytesPerToken,
  observedBytesPerToken,
  recurrentBytes,
  whyKvTypeRefused,
  windowCells,
} from './kv.js';
import { headerBytes } from './header.js';
import { attachmentsOf } from './engine-choice.js';
import { needOf } from './need.js';
import { NO_PROCESS_FIGURES, processFigures } from './process-figures.js';
import {
  artifact,
  attention,
  contract,
  geometry,
  history,
  isoBefore,
  measuredHistory,
  ramBytes,
} from './testing/factories.js';
import { adapterBytes, folderKvBytes, folderWeightsBytes } from './transformers-folder.js';
import {
  type OffloadOrder,
  backboneBytes,
  bytesPerToken,
  cpuMoeLayersForCard,
  cpuMoeLayersForRam,
  offloadOf,
} from './weights.js';

const blocksOf = (cache: BlockKind, n: number) =>
  Array.from({ length: n }, () => ({ alwaysBytes: 0, expertBytes: 0, cache }));
const shape = { slots: 1, microBatch: 512, kvType: 'f16' } as const;

describe('the KV cache (worked figures of the rules)', () => {
  const blocks = blocksOf(attention(8, 128), 36);

  it.each([
    ['f16', 147_456],
    ['q8_0', 78_336],
    ['q4_0', 41_472],
  ] as const)('36 layers, 8 KV heads of 128: %s takes %i bytes per token', (kvType, bytes) => {
    expect(kvBytesPerToken({ blocks }, kvType)).toBe(bytes);
  });

  it('takes 2,415,919,104 bytes for 16,384 tokens', () => {
    const sum = blocks.reduce(
      (s, b) => s + blockCache(b.cache, { ...shape, contextTokens: 16_384 }).kvBytes,
      0,
    );
    expect(sum).toBe(2_415_919_104);
  });

  it('is a quarter of the all-attention figure when 12 of 48 blocks hold KV', () => {
    const linear: BlockKind = {
      kind: 'recurrent',
      convKernel: 4,
      innerSize: 4096,
      groups: 16,
      stateSize: 128,
    };
    const hybrid = [...blocksOf(attention(8, 128), 12), ...blocksOf(linear, 36)];
    const all = kvBytesPerToken({ blocks: blocksOf(attention(8, 128), 48) }, 'f16');
    expect(kvBytesPerToken({ blocks: hybrid }, 'f16')).toBe(all / 4);
  });

  it('has 1,536 cells for a window of 1,024 at 100,000 tokens, and 1,024 at 1,000', () => {
    expect(windowCells(100_000, 1024, 1)).toBe(1536);
    expect(windowCells(1000, 1024, 1)).toBe(1024);
  });

  it('counts a window once per sequence, or once for all when the cache is unified', () => {
    const window: BlockKind = {
      kind: 'window',
      kvHeads: 1,
      keyLength: 1,
      valueLength: 1,
      windowTokens: 1024,
    };
    const at = { ...shape, slots: 2, contextTokens: 100_000 };
    expect(blockCache(window, at).kvBytes).toBe(2 * 1536 * 2 * 2);
    expect(blockCache(window, { ...at, unified: true }).kvBytes).toBe(2560 * 2 * 2);
  });

  it('takes 2,195,456 bytes per sequence for a linear block, at any context', () => {
    const linear = { kind: 'recurrent', convKernel: 4, innerSize: 4096, groups: 16, stateSize: 128 } as const;
    expect(recurrentBytes(linear)).toBe(2_195_456);
    expect(blockCache(linear, { ...shape, contextTokens: 1 })).toEqual(
      blockCache(linear, { ...shape, contextTokens: 1e6 }),
    );
  });

  it('has 576 elements per token for MLA of rank 512 and 64', () => {
    const mla = { kind: 'mla', kvLoraRank: 512, ropeDims: 64 } as const;
    expect(elementsPerCell(mla)).toBe(576);
    expect(blockCache(mla, { ...shape, contextTokens: 256 })).toEqual({
      kvBytes: 256 * 576 * 2,
      stateBytes: 0,
    });
    expect(kvBytesPerToken({ blocks: blocksOf(mla, 61) }, 'q8_0')).toBe((61 * 576 * 34) / 32);
  });

  it('is padded to 256 cells and multiplied by the slots', () => {
    const one = blockCache(attention(1, 1), { ...shape, contextTokens: 1000 }).kvBytes;
    expect(one).toBe(1024 * 2 * 2);
    expect(blockCache(attention(1, 1), { ...shape, contextTokens: 1000, slots: 3 }).kvBytes).toBe(3 * one);
  });

  it('cannot be quantised with head sizes that do not divide by 32', () => {
    expect(whyKvTypeRefused({ blocks: blocksOf(attention(2, 80), 1) }, 'q8_0')).toMatch(/divide by 32.* 80/);
    expect(whyKvTypeRefused({ blocks: blocksOf(attention(2, 80), 1) }, 'f16')).toBeUndefined();
  });

  it('is observed as the median of bytes per token held, unless it reads the same at every count', () => {
    const reading = (tokensHeld: number, kvBytes: number) => ({ tokensHeld, kvBytes });
    expect(observedBytesPerToken([reading(10, 100)])).toBeUndefined();
    expect(observedBytesPerToken([reading(10, 1000), reading(90, 1000)])).toBeUndefined();
    expect(observedBytesPerToken([reading(10, 100), reading(10, 300), reading(10, 200)])).toBe(20);
    const old = Array.from({ length: 30 }, (_, i) => reading(10, i < 10 ? 9000 : 100 + (i % 2)));
    expect(observedBytesPerToken(old)).toBeCloseTo(10.05, 10);
  });

  it('of a class whose calls showed it growing is priced full; a preallocated one as it was measured', () => {
    const plan = contract({ contextTokens: 1000 });
    const klass = placementClassOf('F16', plan);
    const measured = measuredHistory('a', plan, [ramBytes(5 * MIB, 2000)]);
    const kvAt = (...readings: readonly { tokensHeld: number; kvBytes: number }[]) =>
      needOf({
        artifact: artifact(),
        plan: klass,
        history: { ...measured, serving: new Map([[classKey(klass), readings]]) },
        process: NO_PROCESS_FIGURES,
        order: 'blocks-first',
      }).terms.find(({ term }) => term === 'kv')?.bytes;
    expect(kvAt()).toBe(2000);
    expect(kvAt({ tokensHeld: 10, kvBytes: 2000 }, { tokensHeld: 90, kvBytes: 2000 })).toBe(2000);
    expect(kvAt({ tokensHeld: 10, kvBytes: 400 }, { tokensHeld: 90, kvBytes: 3600 })).toBe(40_000);
  });
});

describe('weights by device (worked figures of the rules)', () => {
  it('L = 10 of 32 puts blocks 22 to 31 on the card, or 23 to 31 and the output', () => {
    expect(offloadOf(32, 10, 'blocks-first')).toEqual({ firstBlock: 22, outputOnCard: false });
    expect(offloadOf(32, 10, 'output-first')).toEqual({ firstBlock: 23, outputOnCard: true });
  });

  it.each(['blocks-first', 'output-first'] as const)(
    '%s: more layers than blocks, or fewer than 0, are all and the output',
    (order) => {
      expect(offloadOf(32, 33, order)).toEqual({ firstBlock: 0, outputOnCard: true });
      expect(offloadOf(32, -1, order)).toEqual({ firstBlock: 0, outputOnCard: true });
      expect(offloadOf(32, 0, order)).toEqual({ firstBlock: 32, outputOnCard: false });
    },
  );

  const GPU = deviceId('gpu');
  const weightsOf = (
    of: Geometry,
    gpuLayers: number,
    cpuMoeLayers = 0,
    order: OffloadOrder = 'output-first',
  ) => {
    const { devices, ...plan } = { ...contract({ gpuLayers, cpuMoeLayers, devices: [GPU] }) };
    const bytes = headerBytes(of, { ...plan, devices }, order);
    return { ram: bytes.get(RAM)?.weightsBytes, card: bytes.get(GPU)?.weightsBytes };
  };

  it('keeps the token embedding in RAM, and holds a tied output a second time on the card', () => {
    const tied = geometry({ tiedOutput: true, outputBytes: 0 });
    expect(weightsOf(tied, 5)).toEqual({ ram: 4 * MIB, card: 64 * MIB + 4 * MIB });
    expect(weightsOf(tied, 0)).toEqual({ ram: 68 * MIB, card: 0 });
  });

  it('puts the output on the card with its last blocks, or leaves it in RAM, as the order of the engine has it', () => {
    const own = geometry();
    expect(weightsOf(own, 2, 0, 'blocks-first')).toEqual({ ram: (4 + 32 + 4) * MIB, card: 32 * MIB });
    expect(weightsOf(own, 2, 0, 'output-first')).toEqual({ ram: (4 + 48) * MIB, card: (16 + 4) * MIB });
  });

  it('keeps the experts of the first N blocks in RAM', () => {
    const moe = geometry({
      blocks: Array.from({ length: 4 }, () => ({
        alwaysBytes: MIB,
        expertBytes: 10 * MIB,
        cache: attention(),
      })),
    });
    expect(weightsOf(moe, 5, 3)).toEqual({ ram: 4 * MIB + 30 * MIB, card: 4 * MIB + 10 * MIB + 4 * MIB });
    // The first two blocks are in RAM with their experts; of the others those of the third are.
    expect(weightsOf(moe, 3, 3)).toEqual({
      ram: 4 * MIB + 22 * MIB + 10 * MIB,
      card: 2 * MIB + 10 * MIB + 4 * MIB,
    });
  });

  it('48 experts of 1,000 MiB, backbone 2,048 MiB, 17.7 GiB with 7 reserved: 8 layers on the card, N = 40', () => {
    const experts = Array.from({ length: 48 }, () => 1000 * MIB);
    const kept = cpuMoeLayersForCard(experts, 2048 * MIB, (17.7 - 7) * GIB);
    expect(kept).toBe(40);
    expect(experts.slice(0, kept).reduce((a, b) => a + b, 0)).toBe(40_000 * MIB);
    expect(2048 * MIB + experts.slice(kept).reduce((a, b) => a + b, 0)).toBe(10_048 * MIB);
  });

  it('does not offer the split when the backbone is larger than the card, and keeps all or none at the ends', () => {
    expect(cpuMoeLayersForCard([1, 1], 10, 9)).toBeUndefined();
    expect(cpuMoeLayersForCard([1, 1], 10, 10)).toBe(2);
    expect(cpuMoeLayersForCard([1, 1], 10, 12)).toBe(0);
  });

  it('fills RAM from block 0 upward when RAM is the budget', () => {
    expect(cpuMoeLayersForRam([10, 10, 10], 25)).toBe(2);
    expect(cpuMoeLayersForRam([10, 10, 10], 30)).toBe(3);
    expect(cpuMoeLayersForRam([10, 10, 10], 5)).toBe(0);
  });

  it('reads the backbone and used ÷ count of the experts per token', () => {
    const moe = geometry({
      expertCount: 8,
      expertUsedCount: 2,
      blocks: [{ alwaysBytes: 100, expertBytes: 800, cache: attention() }],
    });
    expect(bytesPerToken(moe)).toBe(backboneBytes(moe) + 200);
  });
});

describe('a transformers folder (worked figures of the rules)', () => {
  it('packed 10 GB, FP8 2 GB and scales 1 GB, never loaded, take 44 GB', () => {
    expect(folderWeightsBytes({ packedBytes: 10e9, fp8Bytes: 2e9, scaleBytes: 1e9, plainBytes: 0 })).toBe(
      44e9,
    );
  });

  it('an adapter of 10 M parameters adds 40,000,000 bytes', () => {
    expect(adapterBytes(10e6)).toBe(40_000_000);
  });

  it('counts only attention entries of layer_types, and nothing without a context', () => {
    const cache = { layers: 4, kvHeads: 2, headDim: 64, dtypeBytes: 2 };
    expect(folderKvBytes(cache, 10)).toBe(2 * 4 * 2 * 64 * 2 * 10);
    const layerTypes = ['full_attention', 'linear_attention', 'sliding_attention', 'mamba'];
    expect(folderKvBytes({ ...cache, layerTypes }, 10)).toBe(2 * 2 * 2 * 64 * 2 * 10);
    expect(folderKvBytes(undefined, 10)).toBe(0);
  });
});

describe('what goes with a model (worked figures of the rules)', () => {
  const files = [{ name: 'x.gguf', bytes: 5 * MIB }];
  const adapter: Attachment = { role: 'adapter', label: 'tone', files, parameters: 10e6 };
  const projector: Attachment = { role: 'projector', label: 'mmproj', files };
  const need = (over: Partial<Contract>, from = history('m')) =>
    needOf({
      artifact: artifact(),
      plan: placementClassOf('F16', contract(over)),
      history: from,
      process: NO_PROCESS_FIGURES,
      order: 'output-first',
      attachments: [projector, adapter],
    });
  const attached = (terms: readonly NeedTerm[]) =>
    terms.filter((t) => t.term === 'adapter' || t.term === 'projector');

  it('an adapter of 10 M parameters adds 40,000,000 bytes, a projector its file', () => {
    const plain = needOf({
      artifact: artifact(),
      plan: placementClassOf('F16', contract()),
      history: history('m'),
      process: NO_PROCESS_FIGURES,
      order: 'output-first',
    });
    const { terms, bytes, exactBytes } = need({});
    expect(attached(terms)).toEqual([
      { deviceId: RAM, term: 'projector', bytes: 5 * MIB, basis: 'header' },
      { deviceId: RAM, term: 'adapter', bytes: 40_000_000, basis: 'header' },
    ]);
    expect((bytes.get(RAM) ?? 0) - (plain.bytes.get(RAM) ?? 0)).toBe(5 * MIB + 40_000_000);
    expect((exactBytes.get(RAM) ?? 0) - (plain.exactBytes.get(RAM) ?? 0)).toBe(5 * MIB + 40_000_000);
  });

  it('both are on the first card of a plan that has layers there', () => {
    const { terms } = need({ gpuLayers: 5, devices: [deviceId('gpu-a'), deviceId('gpu-b')] });
    expect(attached(terms).map((t) => t.deviceId)).toEqual(['gpu-a', 'gpu-a']);
  });

  it('are not counted twice once the engine measured them with the rest', () => {
    expect(attached(need({}, measuredHistory('m', contract(), [ramBytes(1)])).terms)).toEqual([]);
  });

  it('are counted only for an engine that says it opens them, and when they are sound', () => {
    const found = { attachments: [projector, adapter, { ...adapter, broken: 'it ends too early' }] };
    expect(attachmentsOf(found, { capabilities: ['chat'] })).toEqual([]);
    expect(attachmentsOf(found, { capabilities: ['adapter'] })).toEqual([adapter]);
  });
});

describe('the order of belief', () => {
  const ask = (over: Partial<Contract>, from = history('m')) =>
    needOf({
      artifact: artifact(),
      plan: placementClassOf('F16', contract(over)),
      history: from,
      process: NO_PROCESS_FIGURES,
      order: 'output-first',
    });
  const of = (terms: readonly NeedTerm[], name: string) => terms.find((t) => t.term === name);

  it('measured 57.85 GB prices every class of the artifact that was not measured itself', () => {
    const measured = measuredHistory('m', contract(), [ramBytes(57.85e9, 16 * MIB)]);
    const need = ask({ contextTokens: 4096 }, measured);
    expect(of(need.terms, 'weights')).toEqual({
      deviceId: RAM,
      term: 'weights',
      bytes: 57.85e9,
      basis: 'measured+header',
      fromEvent: 'measured-m',
    });
    expect(of(need.terms, 'kv')?.bytes).toBe(8 * MIB);
  });

  it('moves by the difference, so that a measured surplus stays', () => {
    const measured = measuredHistory('m', contract(), [ramBytes(72 * MIB + 500, 16 * MIB + 100)]);
    const need = ask({ contextTokens: 4096 }, measured);
    expect(of(need.terms, 'kv')?.bytes).toBe(8 * MIB + 100);
    expect(of(need.terms, 'weights')?.bytes).toBe(72 * MIB + 500);
  });

  it('believes a measured other class before a projection, and a projection before the header', () => {
    const klass = placementClassOf('F16', contract({ contextTokens: 4096 }));
    const projected = new Map([
      [
        classKey(klass),
        {
          value: { class: klass, byDevice: [ramBytes(1, 2, 3)], source: 'built-in' },
          eventId: 'p',
          at: isoBefore(1),
        },
      ],
    ]);
    expect(of(ask({ contextTokens: 4096 }, history('m', { projected })).terms, 'kv')).toMatchObject({
      bytes: 2,
      basis: 'projected',
      fromEvent: 'p',
    });
    const both = { ...measuredHistory('m', contract(), [ramBytes(72 * MIB, 16 * MIB)]), projected };
    expect(of(ask({ contextTokens: 4096 }, both).terms, 'kv')?.basis).toBe('measured+header');
    expect(of(ask({ contextTokens: 4096 }).terms, 'kv')).toMatchObject({ bytes: 8 * MIB, basis: 'header' });
  });

  it('does not use what another artifact measured', () => {
    const other = measuredHistory('m', contract(), [ramBytes(1)], { artifact: 'Q4_0' });
    expect(of(ask({}, other).terms, 'weights')?.basis).toBe('header');
  });

  it('uses the process figure of any model on the device and engine build', () => {
    const process = processFigures([
      measuredHistory('other', contract(), [ramBytes(1, 1, 1, 90 * MIB)], { eventId: 'e9' }),
    ]);
    const need = needOf({
      artifact: artifact(),
      plan: placementClassOf('F16', contract()),
      history: history('m'),
      process,
      order: 'output-first',
    });
    expect(of(need.terms, 'process')).toEqual({
      deviceId: RAM,
      term: 'process',
      bytes: 90 * MIB,
      basis: 'measured',
      fromEvent: 'e9',
    });
  });

  it('says what is unknown, and prices nothing without a header', () => {
    const need = needOf({
      artifact: { label: 'F16', files: [], complete: true },
      plan: placementClassOf('F16', contract()),
      history: history('m'),
      process: NO_PROCESS_FIGURES,
      order: 'output-first',
    });
    expect(need.terms.map((t) => t.basis)).toEqual(['unknown', 'unknown']);
    expect([...need.unknownOn]).toEqual([RAM]);
  });

  it('splits weights and cache over the devices by their blocks', () => {
    const a = deviceId('gpu-a');
    const b = deviceId('gpu-b');
    const need = ask({
      rung: 'gpu-only',
      gpuLayers: 5,
      devices: [a, b],
      blocksByDevice: [3, 1],
      flashAttention: true,
    });
    const weights = (d: string) => need.terms.find((t) => t.deviceId === d && t.term === 'weights')?.bytes;
    expect([weights(a), weights(b), weights(RAM)]).toEqual([48 * MIB, 20 * MIB, 4 * MIB]);
  });
});
