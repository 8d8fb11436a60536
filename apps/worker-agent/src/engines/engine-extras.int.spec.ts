import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { engineVariables, secretsFile } from './engine-extras.js';

const home = mkdtempSync(join(tmpdir(), 'berth-extras-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const file = secretsFile(join(home, 'engines'));
const extras = { engineEnv: { HF_TOKEN: { secret: 'hub' }, GGML_CUDA_FORCE_MMQ: '1' } };
const variables = () => engineVariables(extras, 'llama-server', file);

describe('variables of an engine', () => {
  it('take secrets from a file beside the engines that its owner alone can read', () => {
    expect(variables).toThrow(`there is no ${file}`);
    writeFileSync(file, JSON.stringify({ hub: 'hf_value' }), { mode: 0o600 });
    expect(variables()).toEqual({ HF_TOKEN: 'hf_value', GGML_CUDA_FORCE_MMQ: '1' });
    chmodSync(file, 0o644);
    expect(variables).toThrow('can be read by others (mode 644)');
    chmodSync(file, 0o600);
    writeFileSync(file, JSON.stringify({ other: 'x' }));
    expect(variables).toThrow('has no such entry');
    writeFileSync(file, 'no json');
    expect(variables).toThrow('no JSON object');
  });

  it('are none without settings, and no file is looked for', () => {
    expect(engineVariables({}, 'built-in', '/nowhere')).toEqual({});
  });

  it('that the engine does not take are refused again where it is started', () => {
    expect(() => engineVariables({ engineArgs: ['--temp', '1'] }, 'built-in', file)).toThrow(
      'built-in takes none, and not "--temp"',
    );
  });
});
