import { RUNGS } from '#domain/placement-terms.js';
import type { EffectiveSettings } from './settings.js';

/** What a level sets; absent means automatic. Keys override one by one. */
export type SettingsPatch = { readonly [K in keyof EffectiveSettings]?: EffectiveSettings[K] };

/** Weakest first. */
export const SETTING_LEVELS = ['fleet', 'worker', 'pair', 'call'] as const;
export type SettingLevel = (typeof SETTING_LEVELS)[number];
export type LevelPatches = { readonly [L in SettingLevel]?: SettingsPatch };

export const defaultSettings: EffectiveSettings = {
  goal: 'quality',
  allowedRungs: RUNGS,
  quantCeiling: 'auto',
  waitBeforeQuality: false,
  priority: 0,
  pinned: false,
  overdueAfterSeconds: 60,
  maxWaitSeconds: 600,
  minResidencySeconds: 0,
  idleEvictSeconds: 0,
  growRoomSeconds: 60,
  growEverySeconds: 600,
  context: 'auto',
  kvType: 'f16',
  parallel: 1,
  evictionOrder: 'loss',
  queueOrder: 'eta',
  maxQueue: 512,
};

export interface SettingsWithSource {
  readonly settings: EffectiveSettings;
  /** The level that each value came from; a knob that nobody set and that has no default is left out. */
  readonly from: { readonly [K in keyof EffectiveSettings]?: SettingLevel | 'default' };
}

/** Lays the levels over the built-in defaults, weakest first, key by key. */
export function effectiveSettings(levels: LevelPatches): SettingsWithSource {
  const settings: Record<string, unknown> = { ...defaultSettings };
  const from: Record<string, SettingLevel | 'default'> = {};
  for (const key of Object.keys(defaultSettings)) from[key] = 'default';
  for (const level of SETTING_LEVELS) {
    for (const [key, value] of Object.entries<unknown>(levels[level] ?? {})) {
      if (value === undefined) continue;
      settings[key] = value;
      from[key] = level;
    }
  }
  return { settings: settings as unknown as EffectiveSettings, from };
}

/** A level's settings as people read them: what it sets, what it has from weaker levels, and what holds. */
export interface SettingsView {
  readonly own: SettingsPatch;
  readonly inherited: SettingsWithSource;
  readonly effective: SettingsWithSource;
}

export function settingsAt(levels: LevelPatches, level: SettingLevel): SettingsView {
  const above = SETTING_LEVELS.slice(0, SETTING_LEVELS.indexOf(level));
  const weaker = Object.fromEntries(above.map((l) => [l, levels[l] ?? {}]));
  const own = levels[level] ?? {};
  return {
    own,
    inherited: effectiveSettings(weaker),
    effective: effectiveSettings({ ...weaker, [level]: own }),
  };
}

/** Pins of a pair skip the ladder; `@fit` asks for the ladder from the top. */
export const withoutPins = (patch: SettingsPatch): SettingsPatch => {
  const { gpuLayers: _layers, cpuMoeLayers: _moe, gpuBytes: _gpu, ramBytes: _ram, ...rest } = patch;
  return rest;
};
