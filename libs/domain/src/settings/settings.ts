import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { SettingsEvent } from '../events/other-events.js';

/** Where settings can stand in the log, weakest first. Defaults lie below them, what a call asks above. */
export const SETTINGS_LEVELS = ['fleet', 'worker', 'pair'] as const;
export type SettingsLevel = (typeof SETTINGS_LEVELS)[number];

/** One value and the event that set it. */
export interface SetValue {
  readonly value: unknown;
  readonly by: string;
  readonly at: string;
  readonly eventId: string;
}

/** What was set at one scope (`fleet`, a worker, a pair). A name that is absent is inherited. */
export interface SettingsState {
  readonly scope: string;
  readonly values: ReadonlyMap<string, SetValue>;
  readonly revision: number;
}

export const initialSettings = (scope: string): SettingsState => ({ scope, values: new Map(), revision: -1 });

/** `fleet`, `worker` for a worker id, `pair` for `<workerId>~<modelKey>`. */
export const levelOf = (scope: string): SettingsLevel =>
  scope === 'fleet' ? 'fleet' : scope.includes('~') ? 'pair' : 'worker';

/** Scopes that a scope inherits from, weakest first, itself last. */
export function scopesAbove(scope: string): readonly string[] {
  const level = levelOf(scope);
  if (level === 'fleet') return ['fleet'];
  if (level === 'worker') return ['fleet', scope];
  return ['fleet', scope.slice(0, scope.indexOf('~')), scope];
}

/** Folds one event of `settings-<scope>`; null in a patch takes a value away. */
export function evolveSettings(state: SettingsState, recorded: Recorded<SettingsEvent>): SettingsState {
  const { event, revision, id, metadata } = recorded;
  if (revision <= state.revision) return state;
  const values = new Map(state.values);
  for (const [name, value] of Object.entries(event.data.patch)) {
    if (value === null) values.delete(name);
    else values.set(name, { value, by: event.data.by, at: metadata.at, eventId: id });
  }
  return { ...state, values, revision };
}

export const settingsFold = (scope: string): StreamFold<SettingsState, SettingsEvent> => ({
  version: 1,
  initial: () => initialSettings(scope),
  evolve: evolveSettings,
});

/** @returns the event that the patch needs: only what it changes; none when it changes nothing. */
export function changeSettings(
  state: SettingsState,
  patch: Readonly<Record<string, unknown>>,
  by: string,
): readonly SettingsEvent[] {
  const changed = Object.entries(patch).filter(([name, value]) =>
    value === null ? state.values.has(name) : !same(state.values.get(name)?.value, value),
  );
  if (changed.length === 0) return [];
  return [{ type: 'SettingsChanged', data: { patch: Object.fromEntries(changed), by } }];
}

export interface EffectiveSetting {
  readonly value: unknown;
  readonly from: 'default' | SettingsLevel;
  /** The scope that it stands at; absent for a default. */
  readonly scope?: string;
  readonly eventId?: string;
}

/** Each name's value and the level that it comes from: stronger levels override name by name. */
export function effectiveSettings(
  defaults: Readonly<Record<string, unknown>>,
  weakestFirst: readonly SettingsState[],
): ReadonlyMap<string, EffectiveSetting> {
  const effective = new Map<string, EffectiveSetting>(
    Object.entries(defaults).map(([name, value]) => [name, { value, from: 'default' }]),
  );
  for (const { scope, values } of weakestFirst) {
    for (const [name, { value, eventId }] of values) {
      effective.set(name, { value, from: levelOf(scope), scope, eventId });
    }
  }
  return effective;
}

/** Equality of JSON values. */
function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) =>
      same((one as Record<string, unknown>)[name], (other as Record<string, unknown>)[name]),
    )
  );
}
