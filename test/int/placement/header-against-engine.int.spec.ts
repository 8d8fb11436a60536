import { statSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { Geometry } from '#domain/geometry.js';
import { initialHistory } from '#domain/history/history.js';
import { RAM, workerId } from '#domain/ids.js';
import { type Contract, type NeedTermName, placementClassOf } from '#domain/placement-terms.js';
import { MIB } from '#domain/units.js';
import { needOf } from '#placement/need.js';
import { NO_PROCESS_FIGURES } from '#placement/process-figures.js';
import { EngineBench } from '../../../apps/worker-agent/src/engines/test-bench.js';
import type { Preset } from '../../../apps/worker-agent/src/make-model/index.js';
import { geometryOf } from '../../../apps/worker-agent/src/models/geometry-of.js';
import { HeaderReader } from '../../../apps/worker-agent/src/models/header-reader.js';

/**
 * What placement reckons from a file's header, against what the engine says that it holds: the same bytes. Only the
 * state of recurrent blocks is told by the engine in hundredths of a MiB, and is compared as closely as that.
 */
const bench = new EngineBench();
const driver = bench.driver();
const reader = new HeaderReader();

afterAll(async () => {
  await reader.close();
  await bench.close();
});

async function geometryOfFile(file: string): Promise<Geometry> {
  const { size: bytes, mtimeMs: modifiedMs } = statSync(file);
  const geometry = geometryOf([await reader.read(file, { bytes, modifiedMs })]);
  if ('broken' in geometry) throw new Error(geometry.broken);
  return geometry;
}

interface Predicted {
  readonly weightsBytes: number;
  readonly kvBytes: number;
  readonly stateBytes: number;
}

/** By the header alone: nothing was measured or projected. */
function predictedBytes(geometry: Geometry, contract: Contract): Predicted {
  const artifact = { label: 'F16', files: [], complete: true, geometry };
  const need = needOf({
    artifact,
    plan: placementClassOf('F16', contract),
    history: initialHistory(workerId('w'), bench.plan('').modelKey),
    process: NO_PROCESS_FIGURES,
    order: 'output-first',
  });
  const of = (name: NeedTermName): number => {
    const terms = need.terms.filter((t) => t.term === name);
    for (const t of terms) expect(t).toMatchObject({ deviceId: RAM, basis: 'header' });
    return terms.reduce((sum, t) => sum + (t.bytes ?? NaN), 0);
  };
  return { weightsBytes: of('weights'), kvBytes: of('kv'), stateBytes: of('state') };
}

/** What a line that rounds to a hundredth of a MiB may be off by. */
const HALF_A_HUNDREDTH = 0.005 * MIB;

function expectSame(predicted: Predicted, said: { weightsBytes: number; kvBytes: number } | undefined): void {
  expect(said?.weightsBytes).toBe(predicted.weightsBytes);
  const cache = predicted.kvBytes + predicted.stateBytes;
  if (predicted.stateBytes === 0) expect(said?.kvBytes).toBe(cache);
  else expect(Math.abs((said?.kvBytes ?? NaN) - cache)).toBeLessThanOrEqual(HALF_A_HUNDREDTH);
}

const FILES = ['chat-a', 'moe', 'hybrid', 'windowed'] as const satisfies readonly Preset[];
const contracts: readonly Partial<Contract>[] = [
  { contextTokens: 512 },
  { contextTokens: 1000, slots: 3, microBatch: 64 },
  { contextTokens: 4096, flashAttention: false },
  { contextTokens: 8192, kvType: 'q8_0', microBatch: 512 },
  { contextTokens: 4096, kvType: 'q4_0', slots: 2 },
  // So many sequences that the rounding of the state is less than 32 bytes for each block of each.
  { contextTokens: 256, slots: 64 },
];
const cases = FILES.flatMap((preset) => contracts.map((contract) => ({ preset, contract })));

describe('the bytes of a generated file, by its header', () => {
  it.each(cases)('are those that the engine projects: $preset, $contract', async ({ preset, contract }) => {
    const { file } = await bench.model(preset);
    const plan = bench.plan(file, contract);
    const projected = await driver.project(plan);
    expectSame(predictedBytes(await geometryOfFile(file), plan.contract), projected?.byDevice[0]);
  });

  it.each(FILES)('are those that the engine holds when it has loaded: %s', async (preset) => {
    const { file } = await bench.model(preset);
    const engine = await bench.start(preset, { contextTokens: 2048, slots: 2 }, driver);
    const [measured] = (await engine.measure()).byDevice;
    await engine.stop();
    const { contract } = bench.plan(file, { contextTokens: 2048, slots: 2 });
    expectSame(predictedBytes(await geometryOfFile(file), contract), measured);
  });

  it('are of four kinds of cache: whole, whole beside experts, with fixed states, and windowed', async () => {
    const kinds = await Promise.all(
      FILES.map(async (preset) => {
        const { blocks } = await geometryOfFile((await bench.model(preset)).file);
        const cache = new Set(blocks.map((b) => b.cache.kind));
        return [...cache, ...(blocks.some((b) => b.expertBytes > 0) ? ['experts'] : [])].sort();
      }),
    );
    expect(kinds).toEqual([
      ['attention'],
      ['attention', 'experts'],
      ['attention', 'recurrent'],
      ['attention', 'window'],
    ]);
  });
});
