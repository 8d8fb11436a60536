import { berthError } from '#domain/errors.js';
import { KV_TYPES, RUNGS } from '#domain/placement-terms.js';
import { type Result, err, ok } from '#domain/result.js';
import type { CallOptions } from '#placement/model-name.js';
import { GOALS } from '#placement/settings.js';
import type { SettingsPatch } from '#placement/setting-levels.js';

type Check = (value: unknown) => boolean;

const number: Check = (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const whole: Check = (value) => number(value) && Number.isInteger(value);
const flag: Check = (value) => typeof value === 'boolean';
const oneOf =
  (values: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && values.includes(value);
const listOf =
  (each: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(each);
const context: Check = (value) => {
  if (whole(value) && value !== 0) return true;
  if (oneOf(['auto', 'low', 'medium', 'high'])(value)) return true;
  if (typeof value !== 'object' || value === null || !('min' in value) || !('max' in value)) return false;
  const { min, max } = value;
  return whole(min) && whole(max) && (min as number) > 0 && (min as number) <= (max as number);
};

/** Knobs that a call may set, with what each must be. Local calls have an admin's rights. */
const KNOBS: Readonly<Record<string, { readonly check: Check; readonly must: string }>> = {
  goal: { check: oneOf(GOALS), must: `one of ${GOALS.join(', ')}` },
  allowedRungs: { check: listOf(oneOf(RUNGS)), must: `a list of ${RUNGS.join(', ')}` },
  waitBeforeQuality: { check: flag, must: 'true or false' },
  latencyTargetSeconds: { check: number, must: 'a number of seconds' },
  maxWaitSeconds: { check: number, must: 'a number of seconds' },
  idleUnloadSeconds: { check: number, must: 'a number of seconds' },
  context: {
    check: context,
    must: 'a number of tokens, auto, low, medium, high, or {"min": tokens, "max": tokens}',
  },
  kvType: { check: oneOf(KV_TYPES), must: `one of ${KV_TYPES.join(', ')}` },
  priority: { check: (value) => Number.isInteger(value), must: 'a whole number' },
  alternatives: { check: listOf((value) => typeof value === 'string'), must: 'a list of artifact labels' },
  gpuLayers: { check: whole, must: 'a whole number of layers' },
  cpuMoeLayers: { check: whole, must: 'a whole number of layers' },
  gpuBytes: { check: whole, must: 'a whole number of bytes' },
  ramBytes: { check: whole, must: 'a whole number of bytes' },
};

/** Beside the knobs: what the name of a model can say as well. */
const OTHERS = ['quant', 'fit'];

/**
 * Lays `berth: {…}` of a body over the options in the model's name.
 * @returns `invalid_request` naming the option and what it must be.
 */
export function withBodyOptions(
  named: CallOptions,
  given: Readonly<Record<string, unknown>> | undefined,
): Result<CallOptions> {
  if (given === undefined) return ok(named);
  const patch: Record<string, unknown> = {};
  let { artifact, fit } = named;
  for (const [key, value] of Object.entries(given)) {
    const knob = Object.hasOwn(KNOBS, key) ? KNOBS[key] : undefined;
    if (knob) {
      if (!knob.check(value)) return err(bad(`"berth.${key}" must be ${knob.must}.`, `berth.${key}`));
      patch[key] = value;
    } else if (key === 'quant' && typeof value === 'string' && value !== '') {
      artifact = value;
    } else if (key === 'fit' && typeof value === 'boolean') {
      fit = value;
    } else if (OTHERS.includes(key)) {
      return err(
        bad(
          `"berth.${key}" must be ${key === 'fit' ? 'true or false' : 'an artifact label'}.`,
          `berth.${key}`,
        ),
      );
    } else {
      const known = [...Object.keys(KNOBS), ...OTHERS].join(', ');
      return err(bad(`"berth.${key}" is no option of a call. Known: ${known}.`, `berth.${key}`));
    }
  }
  const settings: SettingsPatch = { ...named.settings, ...patch };
  return ok({ settings, fit, ...(artifact === undefined ? {} : { artifact }) });
}

const bad = (message: string, param: string) => berthError('invalid_request', message, { param });
