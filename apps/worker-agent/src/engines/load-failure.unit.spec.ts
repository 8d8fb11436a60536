import { describe, expect, it } from 'vitest';
import { classOfWords, exitFailure } from './load-failure.js';
import { filterLoadTimeLines } from './log-tail.js';
import { DEFAULT_TIMING, longestLoadMs } from './readiness.js';

describe('why a load failed, from the words of the engine', () => {
  it.each([
    [
      "0.00.012.345 E llama_model_load: error loading model: tensor 'blk.3.ffn_up.weight' data is not within the file bounds, model is corrupted or incomplete",
      'bad-artifact',
    ],
    ["gguf_init_from_file_impl: invalid magic characters: 'GGML', expected 'GGUF'", 'bad-artifact'],
    ['E berth: load failed: Invalid GGUF magic. Expected "GGUF" but got "This".', 'bad-artifact'],
    [
      '/build/llama.cpp/src/llama-vocab.cpp:2501: GGML_ASSERT(id_to_token.size() == token_to_id.size()) failed',
      'bad-artifact',
    ],
    [
      "E llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'zeta'",
      'incompatible-engine',
    ],
    ['error: invalid argument: --no-ui', 'incompatible-engine'],
    ['llama-server: error while loading shared libraries: libcuda.so.1', 'incompatible-engine'],
    [
      'E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99999999999',
      'out-of-memory',
    ],
    [
      'E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory',
      'out-of-memory',
    ],
    ["E srv  start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", 'exited'],
  ])('%s', (line, expected) => {
    expect(classOfWords(line)).toBe(expected);
  });

  it('tells the sentence that decides, how the process went, and the tail', () => {
    const failure = exitFailure(
      { code: 1 },
      [
        '0.00.010.000 I load_tensors:   CPU_Mapped model buffer size =   200.14 MiB',
        '0.00.012.345 E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 68719476736',
        '0.00.012.400 E llama_init_from_model: failed to initialize the context',
      ].join('\n'),
      0,
    );
    expect(failure.failureClass).toBe('out-of-memory');
    expect(failure.message).toBe(
      'The engine exited with code 1 while loading: ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 68719476736.',
    );
    expect(failure.logTail.split('\n')).toHaveLength(3);
  });

  it('takes a kill without words for want of memory only when the kernel counted one', () => {
    expect(exitFailure({ signal: 'SIGKILL' }, '', 1).failureClass).toBe('out-of-memory');
    expect(exitFailure({ signal: 'SIGKILL' }, '', 0).failureClass).toBe('exited');
    expect(exitFailure({ signal: 'SIGSEGV' }, '', 1).failureClass).toBe('exited');
  });
});

describe('the tail of an engine log', () => {
  it('keeps load-time lines and stops at the first request', () => {
    const text = [
      '0.00.001.000 I load_tensors:   CPU_Mapped model buffer size =   200.14 MiB',
      '0.00.002.000 D something else: {"prompt": "a secret"}',
      '0.00.003.000 I main: model loaded',
      '0.01.000.000 I slot launch_slot_: id  0 | task 0 | processing task',
      '0.01.001.000 E llama_context: said after a request with a secret',
    ].join('\n');
    const tail = filterLoadTimeLines(text);
    expect(tail).toContain('model buffer size');
    expect(tail).toContain('model loaded');
    expect(tail).not.toContain('secret');
  });

  it.each([
    '/build/llama.cpp/src/llama-vocab.cpp:2501: GGML_ASSERT(id_to_token.size() == token_to_id.size()) failed',
    '/build/ggml/src/ggml-cuda/ggml-cuda.cu:98: CUDA error',
  ])('keeps what ends a process, and the failure says it: %s', (line) => {
    expect(filterLoadTimeLines(`berth: loading model\n${line}\nnobody knows this line`)).toBe(
      `berth: loading model\n${line}`,
    );
    expect(exitFailure({ signal: 'SIGABRT' }, `berth: loading model\n${line}\n`, 0).message).toContain(line);
  });

  it('is at most 4 KiB, and its end is the end', () => {
    const lines = Array.from({ length: 500 }, (_, i) => `I print_info: line ${i} of a long header`);
    const tail = filterLoadTimeLines(lines.join('\n'));
    expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(4096);
    expect(tail.endsWith('line 499 of a long header')).toBe(true);
  });
});

describe('the patience with an engine', () => {
  it('is a minute without progress, ten seconds after SIGTERM, and ten minutes beside what its bytes take', () => {
    expect(DEFAULT_TIMING).toEqual({ stallMs: 60_000, killAfterMs: 10_000 });
    expect(longestLoadMs(0)).toBe(600_000);
    // From a disk of 10 MB/s.
    expect(longestLoadMs(40e9)).toBe(600_000 + 4_000_000);
  });
});
