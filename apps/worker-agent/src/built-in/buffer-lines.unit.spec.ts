import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import { copiedWeightBytesFromLines, kvBytesFromLines, splitContextBytes } from './buffer-lines.js';

const line = (mib: string, cells: number, layers: number, seqs: number) =>
  `llama_kv_cache: size = ${mib.padStart(7)} MiB (${String(cells).padStart(6)} cells, ${layers} layers, ${seqs}/${seqs} seqs), K (f16): 0.06 MiB, V (f16): 0.06 MiB`;

describe('buffer sizes from the lines of the engine', () => {
  it('undoes the rounding of a cache line', () => {
    const head = fc.record({
      layers: fc.integer({ min: 1, max: 80 }),
      heads: fc.integer({ min: 1, max: 8 }),
      cells: fc.integer({ min: 1, max: 256 }).map((n) => n * 512),
      streams: fc.integer({ min: 1, max: 8 }),
    });
    fc.assert(
      fc.property(head, ({ layers, heads, cells, streams }) => {
        // Keys and values of 32 values per head, two bytes each.
        const bytes = cells * streams * layers * heads * 32 * 2 * 2;
        expect(kvBytesFromLines(line((bytes / MIB).toFixed(2), cells, layers, streams), 'f16')).toBe(bytes);
      }),
    );
  });

  it('adds the caches of models that have several', () => {
    const text = [
      line('64.00', 4096, 16, 1),
      'llama_kv_cache_iswa: creating SWA KV cache, size = 1024 cells',
      line('16.00', 1024, 16, 1),
      'llama_memory_recurrent: size =    2.53 MiB (     1 cells,  24 layers,  1 seqs), R (f32): 0.53 MiB, S (f32): 2.00 MiB',
    ].join('\n');
    expect(kvBytesFromLines(text, 'f16')).toBe(80 * MIB + Math.round(2.53 * MIB));
  });

  it('finds no cache where there is none', () => {
    expect(kvBytesFromLines('sched_reserve:        CPU compute buffer size =     1.01 MiB', 'f16')).toBe(0);
  });

  it('splits so that the sum stays what the engine reported', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (context, kv) => {
        const { kvBytes, computeBytes } = splitContextBytes(context, kv);
        expect(kvBytes + computeBytes).toBe(context);
        expect(computeBytes).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it('counts weights that are copied, and not those that are mapped', () => {
    const text = [
      'load_tensors:   CPU_Mapped model buffer size =   200.14 MiB',
      'load_tensors:   CPU_REPACK model buffer size =   128.50 MiB',
    ].join('\n');
    expect(copiedWeightBytesFromLines(text)).toBe(128.5 * MIB);
  });
});
