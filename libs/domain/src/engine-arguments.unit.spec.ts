import { describe, expect, it } from 'vitest';
import { isEngineEnv, sameExtras, whyExtrasRefused, whyNoEngineTakes } from './engine-arguments.js';

describe('what a pair passes on to its engine', () => {
  it.each([
    [['--rope-scaling', 'yarn', '--yarn-orig-ctx', '32768'], undefined],
    [['--no-context-shift', '--temp', '0.7'], undefined],
    [['--chat-template-kwargs', '{"enable_thinking":false}'], undefined],
    [['--ctx-size', '8192'], 'not "--ctx-size"'],
    [['-ngl', '99'], 'not "-ngl"'],
    [['--host', '0.0.0.0'], 'not "--host"'],
    [['--lora', '/etc/passwd'], 'not "--lora"'],
    [['--chat-template-file', '/x'], 'not "--chat-template-file"'],
    [['--rope-scaling', 'cubic'], '--rope-scaling with another value than "cubic"'],
    [['--temp'], '--temp with another value than none'],
    [['toString'], 'not "toString"'],
  ])('arguments %j: %s', (engineArgs, why) => {
    const said = whyExtrasRefused('llama-server', { engineArgs });
    if (why === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(why);
  });

  it('variables are taken by name, and none that loads a library', () => {
    expect(whyExtrasRefused('llama-server', { engineEnv: { GGML_CUDA_FORCE_MMQ: '1' } })).toBeUndefined();
    for (const name of ['LD_PRELOAD', 'GGML_BACKEND_PATH', 'CUDA_VISIBLE_DEVICES', 'CUDA_INJECTION64_PATH'])
      expect(whyExtrasRefused('llama-server', { engineEnv: { [name]: 'x' } })).toContain(`not "${name}"`);
  });

  it('a secret is named, never written', () => {
    expect(whyExtrasRefused('llama-server', { engineEnv: { HF_TOKEN: 'hf_abc' } })).toContain('is a secret');
    expect(whyExtrasRefused('llama-server', { engineEnv: { HF_TOKEN: { secret: 'hub' } } })).toBeUndefined();
    expect(isEngineEnv({ HF_TOKEN: { secret: 'hub', value: 'x' } })).toBe(false);
  });

  it('the built-in engine takes none, and says so', () => {
    expect(whyExtrasRefused('built-in', { engineArgs: ['--temp', '1'] })).toBe(
      'built-in takes none, and not "--temp"',
    );
    expect(whyNoEngineTakes({ engineArgs: ['--temp', '1'] })).toBeUndefined();
    expect(whyNoEngineTakes({ engineArgs: ['--port', '1'] })).toContain('llama-server takes');
  });

  it('is the same in whatever order variables are listed', () => {
    const a = { engineEnv: { GGML_CUDA_FORCE_MMQ: '1', HF_TOKEN: { secret: 'hub' } } };
    const b = { engineEnv: { HF_TOKEN: { secret: 'hub' }, GGML_CUDA_FORCE_MMQ: '1' } };
    expect(sameExtras(a, b)).toBe(true);
    expect(sameExtras(a, {})).toBe(false);
    expect(sameExtras({ engineArgs: ['--temp', '1'] }, { engineArgs: ['--temp', '2'] })).toBe(false);
  });
});
