import { isEngineArgs, isEngineEnv, whyNoEngineTakes } from '#domain/engine-arguments.js';
import { EVICTION_ORDERS, KV_TYPES, RUNGS } from '#domain/placement-terms.js';
import type { SettingsState } from '#domain/settings/settings.js';
import { memo } from './memo.js';
import type { SettingLevel, SettingsPatch } from './setting-levels.js';
import { type EffectiveSettings, GOALS, QUEUE_ORDERS } from './settings.js';

/** What a knob may be, and where it may stand. */
export interface Knob {
  readonly check: (value: unknown) => boolean;
  /** Ends the sentence "must be". */
  readonly must: string;
  /** Levels of the log at which it may be set. */
  readonly levels: readonly Exclude<SettingLevel, 'call'>[];
  /** Who may set it for one call; absent: nobody. */
  readonly call?: 'use' | 'admin';
  /** Why a value that has the form is not taken, as a sentence. */
  readonly whyNot?: (value: unknown) => string | undefined;
}

const number = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const whole = (value: unknown): boolean => number(value) && Number.isInteger(value);
const positive = (value: unknown): boolean => whole(value) && value !== 0;
const flag = (value: unknown): boolean => typeof value === 'boolean';
const text = (value: unknown): boolean => typeof value === 'string' && value !== '';
const oneOf =
  (values: readonly string[]) =>
  (value: unknown): boolean =>
    typeof value === 'string' && values.includes(value);
const listOf =
  (each: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.length > 0 && value.every(each);

function context(value: unknown): boolean {
  if (positive(value) || oneOf(['auto', 'low', 'medium', 'high'])(value)) return true;
  if (typeof value !== 'object' || value === null || !('min' in value) || !('max' in value)) return false;
  const { min, max } = value;
  return positive(min) && positive(max) && (min as number) <= (max as number);
}

const ANY = ['fleet', 'worker', 'pair'] as const;
const SECONDS = 'a number of seconds';
const LAYERS = 'a whole number of layers';
const BYTES = 'a whole number of bytes';

/** Every knob of placement. */
export const KNOBS: Readonly<Record<keyof EffectiveSettings, Knob>> = {
  goal: { check: oneOf(GOALS), must: `one of ${GOALS.join(', ')}`, levels: ANY, call: 'use' },
  allowedRungs: {
    check: listOf(oneOf(RUNGS)),
    must: `a list of ${RUNGS.join(', ')}`,
    levels: ANY,
    call: 'use',
  },
  alternatives: { check: listOf(text), must: 'a list of artifact labels', levels: ANY, call: 'admin' },
  quantCeiling: {
    check: (value) => oneOf(['auto', 'off'])(value) || listOf(text)(value),
    must: 'auto, off, or a list of artifact labels',
    levels: ['fleet', 'worker'],
  },
  waitBeforeQuality: { check: flag, must: 'true or false', levels: ANY, call: 'use' },
  priority: { check: (value) => Number.isInteger(value), must: 'a whole number', levels: ANY, call: 'admin' },
  pinned: { check: flag, must: 'true or false', levels: ['pair'] },
  latencyTargetSeconds: { check: number, must: SECONDS, levels: ANY, call: 'use' },
  overdueAfterSeconds: { check: number, must: SECONDS, levels: ANY },
  maxWaitSeconds: { check: number, must: SECONDS, levels: ANY, call: 'use' },
  minResidencySeconds: { check: number, must: SECONDS, levels: ANY },
  idleEvictSeconds: { check: number, must: SECONDS, levels: ANY },
  idleUnloadSeconds: { check: number, must: SECONDS, levels: ANY, call: 'use' },
  growRoomSeconds: { check: number, must: SECONDS, levels: ANY },
  growEverySeconds: { check: number, must: SECONDS, levels: ANY },
  preload: { check: listOf(text), must: 'a list of models', levels: ['worker'] },
  context: {
    check: context,
    must: 'a number of tokens, auto, low, medium, high, or {"min": tokens, "max": tokens}',
    levels: ANY,
    call: 'use',
  },
  kvType: { check: oneOf(KV_TYPES), must: `one of ${KV_TYPES.join(', ')}`, levels: ANY, call: 'use' },
  parallel: { check: positive, must: 'a whole number of slots, at least 1', levels: ANY },
  gpuLayers: { check: whole, must: LAYERS, levels: ['pair'], call: 'admin' },
  cpuMoeLayers: { check: whole, must: LAYERS, levels: ['pair'], call: 'admin' },
  gpuBytes: { check: whole, must: BYTES, levels: ['pair'], call: 'admin' },
  ramBytes: { check: whole, must: BYTES, levels: ['pair'], call: 'admin' },
  cpuCores: {
    check: (value) => positive(value) || listOf(whole)(value),
    must: 'a number of cores or a list of core numbers',
    levels: ['pair'],
  },
  cpuFloorCores: { check: whole, must: 'a whole number of cores', levels: ANY },
  cpuPriority: { check: whole, must: 'a whole number of cores', levels: ['pair'] },
  engineArgs: {
    check: isEngineArgs,
    must: 'a list of arguments, as in ["--rope-scaling", "yarn"]',
    levels: ['pair'],
    whyNot: (value) => (isEngineArgs(value) ? whyNoEngineTakes({ engineArgs: value }) : undefined),
  },
  engineEnv: {
    check: isEngineEnv,
    must: 'variables with a text each, or with {"secret": "name"} for an entry of the file of secrets',
    levels: ['pair'],
    whyNot: (value) => (isEngineEnv(value) ? whyNoEngineTakes({ engineEnv: value }) : undefined),
  },
  evictionOrder: {
    check: oneOf(EVICTION_ORDERS),
    must: `one of ${EVICTION_ORDERS.join(', ')}`,
    levels: ['fleet', 'worker'],
  },
  queueOrder: { check: oneOf(QUEUE_ORDERS), must: `one of ${QUEUE_ORDERS.join(', ')}`, levels: ['fleet'] },
  maxQueue: { check: positive, must: 'a whole number of calls', levels: ['fleet'] },
};

export const isKnob = (name: string): name is keyof EffectiveSettings => Object.hasOwn(KNOBS, name);

/** @returns why a value cannot stand at a level, as a sentence; undefined when it can. */
export function whyNotSettable(name: string, value: unknown, level: SettingLevel): string | undefined {
  if (!isKnob(name)) return `There is no setting "${name}".`;
  const knob = KNOBS[name];
  if (level === 'call' ? knob.call === undefined : !knob.levels.includes(level)) {
    const where = [...knob.levels, ...(knob.call ? ['call'] : [])].join(', ');
    return `"${name}" cannot be set for a ${level}; it can for: ${where}.`;
  }
  if (!knob.check(value)) return `"${name}" must be ${knob.must}.`;
  const why = knob.whyNot?.(value);
  return why === undefined ? undefined : `"${name}": ${why}.`;
}

const patches = memo((_: SettingsState) => new Map<SettingLevel, SettingsPatch>());

/** What one scope of the log sets: the knobs alone, and of these what can stand at its level. */
export function patchOf(state: SettingsState, level: Exclude<SettingLevel, 'call'>): SettingsPatch {
  const known = patches(state).get(level);
  if (known) return known;
  const patch: Record<string, unknown> = {};
  for (const [name, { value }] of state.values) {
    if (whyNotSettable(name, value, level) === undefined) patch[name] = value;
  }
  patches(state).set(level, patch);
  return patch;
}
