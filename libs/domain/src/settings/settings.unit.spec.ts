import { describe, expect, it } from 'vitest';
import type { SettingsEvent } from '../events/other-events.js';
import { LogOf } from '../testing/given.js';
import {
  changeSettings,
  effectiveSettings,
  evolveSettings,
  initialSettings,
  scopesAbove,
  type SettingsState,
} from './settings.js';

const fold = (scope: string, ...patches: Record<string, unknown>[]): SettingsState => {
  const log = new LogOf<SettingsEvent>(`settings-${scope}`);
  for (const patch of patches) log.add({ type: 'SettingsChanged', data: { patch, by: 'cli' } });
  return log.recorded.reduce(evolveSettings, initialSettings(scope));
};

describe('settings', () => {
  it('keep the last value of each name and the event that set it; null gives it back to the level above', () => {
    const state = fold('fleet', { goal: 'a', slots: 2 }, { goal: 'b' }, { slots: null });
    expect([...state.values.keys()]).toEqual(['goal']);
    expect(state.values.get('goal')).toMatchObject({ value: 'b', eventId: 'event-1' });
    expect(state.revision).toBe(2);
  });

  it('change only by what differs, and by no event when nothing does', () => {
    const state = fold('w1', { goal: 'a', rungs: ['gpu-only', 'moe'], range: { min: 1, max: 2 } });
    expect(changeSettings(state, { goal: 'a', rungs: ['gpu-only', 'moe'], absent: null }, 'cli')).toEqual([]);
    expect(changeSettings(state, { range: { max: 2, min: 1 } }, 'cli')).toEqual([]);
    expect(changeSettings(state, { goal: 'a', slots: 2, range: null }, 'cli')).toEqual([
      { type: 'SettingsChanged', data: { patch: { slots: 2, range: null }, by: 'cli' } },
    ]);
  });

  it('are inherited name by name from fleet over worker to pair, and say where each comes from', () => {
    expect(scopesAbove('w1~owner/model')).toEqual(['fleet', 'w1', 'w1~owner/model']);
    const effective = effectiveSettings({ goal: 'default', slots: 1, kv: 'f16' }, [
      fold('fleet', { goal: 'fleet', slots: 2 }),
      fold('w1', { slots: 4 }),
      fold('w1~owner/model', { goal: 'pair' }),
    ]);
    expect(
      Object.fromEntries([...effective].map(([name, { value, from }]) => [name, [value, from]])),
    ).toEqual({
      goal: ['pair', 'pair'],
      slots: [4, 'worker'],
      kv: ['f16', 'default'],
    });
  });
});
