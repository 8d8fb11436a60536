import { describe, expect, it } from 'vitest';
import { GIB, MIB } from '#domain/units.js';
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
    for (const { fits, rung, reason } of verdictsOf(factories.input('a', { worker }))) {
      expect(fits).toBe('never');
      expect(reason).toMatch(rung === 'ram-only' ? /^needs .+ MiB of RAM, and its size is 16\.0 MiB$/ : /./);
    }
  });

  it('say unknown, and why, where a reading is missing', () => {
    const unread = factories.worker({ foreign: new Map() });
    expect(shortVerdict(factories.input('a', { worker: unread }))).toMatchObject({
      fits: 'unknown',
      rung: 'ram-only',
      reason: 'the room of RAM is unknown: no reading yet of what other programs use of RAM',
    });
    expect(
      verdictsOf(factories.input('a', { worker: unread })).find(({ rung }) => rung === 'ram-only'),
    ).toMatchObject({ fits: 'unknown', room: [{ deviceId: 'ram' }] });
  });

  it('say of a folder that no engine opens what it would take, by its headers', () => {
    const folder = factories.artifact({ format: 'safetensors' });
    const model = factories.model('a', { artifacts: [folder] });
    const [f16, , q4] = verdictsOf(factories.input('a', { model }));
    expect(f16).toMatchObject({ fits: 'never', contextTokens: 8192 });
    expect(f16?.reason).toContain('opens safetensors');
    // 4 blocks of 16 MiB, embedding and output of 4 MiB each, and the cache of 8,192 tokens.
    expect(f16?.need).toMatchObject([{ deviceId: 'ram', bytes: (72 + 16) * MIB, basis: 'header' }]);
    expect(q4?.need[0]?.bytes).toBeLessThan((72 + 16) * MIB);
  });

  it('are said in short as the first way down the ladder', () => {
    expect(shortVerdict(factories.input('a'))).toMatchObject({ fits: 'now', rung: 'ram-only' });
    const worker = factories.worker({ ramBytes: GIB / 64 });
    const small = shortVerdict(factories.input('a', { worker }));
    expect(small).toMatchObject({ fits: 'never', rung: 'gpu-only' });
    expect(small.reason).not.toBe('');
    expect(betterVerdict(small, shortVerdict(factories.input('a'))).fits).toBe('now');
  });
});
