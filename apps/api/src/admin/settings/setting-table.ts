import { defaultSettings } from '#placement/setting-levels.js';
import { isKnob, whyNotSettable } from '#placement/knobs.js';
import type { SettingsLevel } from '#domain/settings/settings.js';
import { DOOR_KNOBS } from '../../access/door-settings.js';

/** Every setting of the log with its default: those of placement, and those that say who may come in. */
export const SETTING_DEFAULTS: Readonly<Record<string, unknown>> = {
  ...defaultSettings,
  ...Object.fromEntries(Object.entries(DOOR_KNOBS).map(([name, knob]) => [name, knob.default])),
};

/** @returns why a value cannot stand at a level, as a sentence; null only needs the name to be one. */
export function whyNotSet(name: string, value: unknown, level: SettingsLevel): string | undefined {
  const door = Object.hasOwn(DOOR_KNOBS, name) ? DOOR_KNOBS[name] : undefined;
  if (door) {
    if (level !== 'fleet') return `"${name}" cannot be set for a ${level}; it can for: fleet.`;
    return value === null || door.check(value) ? undefined : `"${name}" must be ${door.must}.`;
  }
  // What stands already, wherever it came from, can always be taken back.
  if (value === null && isKnob(name)) return undefined;
  return whyNotSettable(name, value, level);
}
