import { describe, expect, it } from 'vitest';
import { evolveSettings, initialSettings } from '#domain/settings/settings.js';
import { KNOBS, patchOf, whyNotSettable } from './knobs.js';
import { effectiveSettings, settingsAt } from './setting-levels.js';

const ANY = 'fleet, worker, pair';
/** Where a knob may stand, and who may set it for one call: the table of the rules. */
const TABLE: readonly (readonly [
  keyof typeof KNOBS,
  string,
  'use' | 'admin' | undefined,
  unknown,
  unknown,
])[] = [
  ['goal', ANY, 'use', 'fast', 'best'],
  ['allowedRungs', ANY, 'use', ['moe'], ['gpu']],
  ['alternatives', ANY, 'admin', ['Q4_K_M'], []],
  ['quantCeiling', 'fleet, worker', undefined, 'off', 'on'],
  ['waitBeforeQuality', ANY, 'use', true, 1],
  ['priority', ANY, 'admin', -1, 0.5],
  ['pinned', 'pair', undefined, true, 'yes'],
  ['latencyTargetSeconds', ANY, 'use', 2.5, -1],
  ['overdueAfterSeconds', ANY, undefined, 0, Infinity],
  ['maxWaitSeconds', ANY, 'use', 60, '60'],
  ['minResidencySeconds', ANY, undefined, 5, null],
  ['idleEvictSeconds', ANY, undefined, 5, NaN],
  ['idleUnloadSeconds', ANY, 'use', 5, -5],
  ['context', ANY, 'use', { min: 1, max: 2 }, { min: 2, max: 1 }],
  ['kvType', ANY, 'use', 'q8_0', 'f32'],
  ['parallel', ANY, undefined, 4, 0],
  ['gpuLayers', 'pair', 'admin', 0, 1.5],
  ['cpuMoeLayers', 'pair', 'admin', 3, -1],
  ['gpuBytes', 'pair', 'admin', 1024, '1 GiB'],
  ['ramBytes', 'pair', 'admin', 1024, -1],
  ['cpuCores', 'pair', undefined, [0, 2], []],
  ['cpuFloorCores', ANY, undefined, 2, 0.5],
  ['cpuPriority', 'pair', undefined, 2, -2],
  ['engineArgs', 'pair', undefined, ['--rope-scaling', 'yarn'], []],
  ['engineEnv', 'pair', undefined, { GGML_CUDA_FORCE_MMQ: '1', HF_TOKEN: { secret: 'hub' } }, { A: 1 }],
];

describe('the table of knobs', () => {
  it.each(TABLE)('%s stands at %s; a call of scope %s may set it', (name, levels, call, good, bad) => {
    expect(KNOBS[name].levels.join(', ')).toBe(levels);
    expect(KNOBS[name].call).toBe(call);
    for (const level of ['fleet', 'worker', 'pair'] as const)
      expect(whyNotSettable(name, good, level) === undefined).toBe(levels.includes(level));
    expect(whyNotSettable(name, bad, KNOBS[name].levels[0] ?? 'pair')).toContain(`"${name}" must be `);
  });

  it('says of a wrong level where the knob can stand, and knows no other names', () => {
    expect(whyNotSettable('pinned', true, 'fleet')).toBe(
      '"pinned" cannot be set for a fleet; it can for: pair.',
    );
    expect(whyNotSettable('constructor', 1, 'fleet')).toBe('There is no setting "constructor".');
  });
});

describe('settings of the log', () => {
  const changed = (revision: number, patch: Record<string, unknown>) => ({
    stream: 'settings-w~m',
    id: `e${revision}`,
    revision,
    position: 0n,
    event: { type: 'SettingsChanged' as const, data: { patch, by: 'admin' } },
    metadata: { $correlationId: 'c', at: '2026-01-02T03:04:05Z', by: 'api', schemaVersion: 1 },
  });
  const fold = (...patches: readonly Record<string, unknown>[]) =>
    patches.reduce<ReturnType<typeof initialSettings>>(
      (state, patch, i) => evolveSettings(state, changed(i, patch) as never),
      initialSettings('w~m'),
    );

  it('give the knobs that can stand at their level, and nothing else', () => {
    const state = fold({ pinned: true, priority: 2, quantCeiling: 'off', kvType: 'f32', engineArgs: ['-x'] });
    expect(patchOf(state, 'pair')).toEqual({ pinned: true, priority: 2 });
  });

  it('take a value away with null, so that it is inherited again', () => {
    const pair = patchOf(fold({ priority: 2 }, { priority: null }), 'pair');
    expect(effectiveSettings({ fleet: { priority: 1 }, pair })).toMatchObject({
      settings: { priority: 1 },
      from: { priority: 'fleet' },
    });
  });

  it('are shown as what a level sets, what it inherits and what holds', () => {
    const view = settingsAt(
      { fleet: { goal: 'fast' }, worker: { parallel: 2 }, pair: { goal: 'quality' } },
      'pair',
    );
    expect(view.own).toEqual({ goal: 'quality' });
    expect(view.inherited).toMatchObject({
      settings: { goal: 'fast', parallel: 2 },
      from: { goal: 'fleet', parallel: 'worker' },
    });
    expect(view.effective).toMatchObject({ settings: { goal: 'quality' }, from: { goal: 'pair' } });
  });
});
