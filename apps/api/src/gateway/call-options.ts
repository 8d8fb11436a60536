import { berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import { KNOBS, isKnob } from '#placement/knobs.js';
import type { CallOptions } from '#placement/model-name.js';
import type { SettingsPatch } from '#placement/setting-levels.js';
import type { Caller } from '../access/access.js';

const CALL_KNOBS = Object.entries(KNOBS).flatMap(([name, { call }]) => (call ? [name] : []));

/** Beside the knobs: what the name of a model can say as well. */
const OTHERS = ['quant', 'fit', 'worker'];

/**
 * Lays `berth: {…}` of a body over the options in the model's name.
 * @returns `invalid_request` naming the option and what it must be, `forbidden` where it takes an admin's rights.
 */
export function withBodyOptions(
  named: CallOptions,
  given: Readonly<Record<string, unknown>> | undefined,
  rights: Caller['rights'],
): Result<CallOptions> {
  if (given === undefined) return ok(named);
  const patch: Record<string, unknown> = {};
  let { artifact, fit, worker } = named;
  for (const [key, value] of Object.entries(given)) {
    const knob = isKnob(key) ? KNOBS[key] : undefined;
    if (knob?.call === 'admin' && rights !== 'admin') {
      const message = `"berth.${key}" may be set by calls with an admin key, and by those of this machine.`;
      return err(berthError('forbidden', message, { param: `berth.${key}` }));
    }
    if (knob?.call) {
      if (!knob.check(value)) return err(bad(`"berth.${key}" must be ${knob.must}.`, `berth.${key}`));
      patch[key] = value;
    } else if (key === 'quant' && typeof value === 'string' && value !== '') {
      artifact = value;
    } else if (key === 'fit' && typeof value === 'boolean') {
      fit = value;
    } else if (key === 'worker' && typeof value === 'string' && value !== '') {
      worker = value;
    } else if (OTHERS.includes(key)) {
      return err(
        bad(
          `"berth.${key}" must be ${key === 'fit' ? 'true or false' : key === 'worker' ? 'the name or the id of a worker' : 'an artifact label'}.`,
          `berth.${key}`,
        ),
      );
    } else {
      const known = [...CALL_KNOBS, ...OTHERS].join(', ');
      return err(bad(`"berth.${key}" is no option of a call. Known: ${known}.`, `berth.${key}`));
    }
  }
  const settings: SettingsPatch = { ...named.settings, ...patch };
  return ok({
    settings,
    fit,
    ...(artifact === undefined ? {} : { artifact }),
    ...(worker === undefined ? {} : { worker }),
  });
}

const bad = (message: string, param: string) => berthError('invalid_request', message, { param });
