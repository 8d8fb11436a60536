import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hintsOf } from './command-lines.js';

const of = (line: string, env: Record<string, string> = {}, cwd?: string) =>
  hintsOf({ argv: line.split(' '), env, ...(cwd === undefined ? {} : { cwd }) });

describe('where running programs say that models lie', () => {
  it('llama.cpp: the model, its projector and its adapters, absolute or from its folder', () => {
    expect(
      of('/usr/bin/llama-server -m /d/m.gguf --mmproj=/d/mm.gguf --lora /d/a.gguf,/d/b.gguf -c 4096').files,
    ).toEqual([{ model: '/d/m.gguf', projectors: ['/d/mm.gguf'], adapters: ['/d/a.gguf', '/d/b.gguf'] }]);
    expect(of('llama-cli --model sub/m.gguf', {}, '/home/u').files[0]?.model).toBe('/home/u/sub/m.gguf');
    expect(of('llama-cli --model sub/m.gguf').files).toEqual([]);
    expect(of('llama-server', { LLAMA_ARG_MODEL: '/d/e.gguf' }).files[0]?.model).toBe('/d/e.gguf');
    expect(of('llama-server --models-dir /d/all').roots).toEqual([{ name: 'models', path: '/d/all' }]);
  });

  it('vLLM and SGLang: a folder, or the cache that a name lies in', () => {
    expect(of('/v/bin/python3.12 /v/bin/vllm serve /d/Qwen --port 1').files[0]?.model).toBe('/d/Qwen');
    expect(of('python -m vllm.entrypoints.openai.api_server --model /d/Q').files[0]?.model).toBe('/d/Q');
    expect(of('python3 -m sglang.launch_server --model-path /d/S').files[0]?.model).toBe('/d/S');
    expect(of('vllm serve owner/repo', { HF_HOME: '/hf' })).toEqual({
      files: [],
      roots: [{ name: 'huggingface', path: '/hf/hub' }],
    });
  });

  it('Ollama: the store of the blob that it runs, or that it was told', () => {
    const blob = `sha256-${'ab'.repeat(32)}`;
    expect(of(`/usr/local/bin/ollama runner --model /o/models/blobs/${blob} --port 1`).roots).toEqual([
      { name: 'ollama', path: '/o/models' },
    ]);
    expect(of('ollama serve', { OLLAMA_MODELS: '/o2' }).roots).toEqual([{ name: 'ollama', path: '/o2' }]);
  });

  it('nothing of any other program, and nothing breaks it', () => {
    expect(of('vim -m /d/m.gguf')).toEqual({ files: [], roots: [] });
    expect(of('python train.py --model /d/m')).toEqual({ files: [], roots: [] });
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom('llama-server', '-m', '--model', 'vllm', 'serve', '--lora', '-m='),
    );
    fc.assert(
      fc.property(fc.array(word), fc.option(fc.string(), { nil: undefined }), (argv, cwd) => {
        const hints = hintsOf({ argv, env: {}, ...(cwd === undefined ? {} : { cwd }) });
        for (const file of hints.files) expect(file.model).not.toBe('');
      }),
    );
  });
});
