import { describe, expect, it } from 'vitest';
import { GIB } from '#domain/units.js';
import { askOf, whyNotReusable } from './ask.js';
import { decide } from './decide.js';
import { defaultSettings } from './setting-levels.js';
import {
  artifact,
  ask,
  BUILT_IN,
  contract,
  decidedOf,
  input,
  LLAMA_SERVER,
  resident,
  worker,
} from './testing/factories.js';

const engineArgs = ['--rope-scaling', 'yarn'];
const engineEnv = { GGML_CUDA_FORCE_MMQ: '1' };
const settings = { ...defaultSettings, engineArgs, engineEnv };

describe('arguments and variables of a pair', () => {
  it('go into the ask and the contract, to an engine that takes them', () => {
    const asked = askOf(settings);
    expect(asked).toMatchObject({ engineArgs, engineEnv });
    const both = worker({ engines: [BUILT_IN, LLAMA_SERVER], ramBytes: 8 * GIB });
    const { contract: made, ask: kept } = decidedOf(decide(input('m/a', { ask: asked, worker: both })));
    expect(made).toMatchObject({ engine: { kind: 'llama-server' }, engineArgs, engineEnv });
    expect(kept).toMatchObject({ engineArgs, engineEnv });
  });

  it('are no way to be placed where no engine takes them, and the refusal says which do not', () => {
    const outcome = decide(input('m/a', { ask: askOf(settings) }));
    expect(outcome).toMatchObject({ kind: 'refused', data: { code: 'incompatible_engine' } });
    expect(outcome.kind === 'refused' && outcome.data.reason).toContain(
      'built-in takes none, and not "--rope-scaling"',
    );
  });

  it('that differ are a reason to reload', () => {
    const question = { approved: [artifact()], callTokens: 0, largestTokens: 8192 };
    const plain = resident('m/a');
    const yarn = resident('m/a', { contract: contract({ engineArgs, engineEnv }) });
    const asked = ask({ engineArgs, engineEnv });
    expect(whyNotReusable(yarn, { ask: asked, ...question })).toBeUndefined();
    for (const [one, of] of [
      [plain, asked],
      [yarn, ask()],
    ] as const)
      expect(whyNotReusable(one, { ask: of, ...question })).toBe(
        'its engine has other arguments or variables',
      );
  });
});
