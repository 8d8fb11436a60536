import { describe, expect, it } from 'vitest';
import { GIB } from '#domain/units.js';
import { decide } from './decide.js';
import * as factories from './testing/factories.js';
import { betterVerdict, shortVerdict, verdictsOf } from './verdicts.js';

describe('the verdicts of a pair', () => {
  it('say of every artifact, rung and KV type what it needs, whether it fits, how far and how fast', () => {
    const verdicts = verdictsOf(factories.input('a'));
    const kinds = new Set(verdicts.map(({ kvType }) => kvType));
    expect([...kinds]).toEqual(['f16', 'q8_0', 'q4_0']);
    const ram = verdicts.find(({ rung, kvType }) => rung === 'ram-only' && kvType === 'f16');
    expect(ram).toMatchObject({
      fits: 'now',
      evicting: [],
      context: { state: expect.any(String) as string },
    });
    expect(ram?.need[0]?.bytes).toBeGreaterThan(0);
    expect(ram?.cores).toBeGreaterThan(0);
    // The same figures as the decision that would be taken.
    const outcome = decide(factories.input('a'));
    expect(['decided', 'project']).toContain(outcome.kind);
    const gpu = verdicts.find(({ rung }) => rung === 'gpu-only');
    expect(gpu).toMatchObject({ fits: 'never', need: [] });
    expect(gpu?.reason).not.toBe('');
  });

  it('say never, with both figures, of what is larger than the machine', () => {
    const worker = factories.worker({ ramBytes: GIB / 64 });
    for (const verdict of verdictsOf(factories.input('a', { worker }))) {
      expect(['never', 'unknown']).toContain(verdict.fits);
      expect(verdict.reason).not.toBe('');
    }
  });

  it('are said in short as the first way down the ladder', () => {
    expect(shortVerdict(factories.input('a'))).toMatchObject({ fits: 'now', rung: 'ram-only' });
    const worker = factories.worker({ ramBytes: GIB / 64 });
    const small = shortVerdict(factories.input('a', { worker }));
    expect(['never', 'unknown']).toContain(small.fits);
    expect(small.reason).not.toBe('');
    expect(betterVerdict(small, shortVerdict(factories.input('a'))).fits).toBe('now');
  });
});
