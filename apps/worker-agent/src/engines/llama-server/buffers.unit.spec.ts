import { describe, expect, it } from 'vitest';
import { deviceId, modelKey, RAM, residentId } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import type { EngineStateFile } from '../../ports.js';
import { bytesByDevice, parseBufferLines, parseFitPrint } from './buffers.js';
import { measured, parseInFlight, wrongPlacement } from './dialect.js';
import { parseDevices } from './probe.js';

const CPU_LOG = `0.00.001.000 I common_params_print_info: build 1 (80fb11a) with GNU 12.2.0 for x86_64-linux-gnu
0.00.020.000 I load_tensors:   CPU_Mapped model buffer size =   200.14 MiB
0.00.030.000 I llama_context:        CPU  output buffer size =     0.03 MiB
0.00.031.000 I llama_kv_cache:        CPU KV buffer size =    64.00 MiB
0.00.031.100 I llama_kv_cache: size =   64.00 MiB (  4096 cells,  16 layers,  1/1 seqs), K (f16):   32.00 MiB, V (f16):   32.00 MiB
0.00.032.000 I sched_reserve:        CPU compute buffer size =    28.51 MiB
0.00.040.000 I main: model loaded`;

const GPU_LOG = `0.00.020.000 I load_tensors: offloaded 17/33 layers to GPU
0.00.020.000 I load_tensors:        CUDA0 model buffer size =  1000.00 MiB
0.00.020.000 I load_tensors:        CUDA1 model buffer size =   900.00 MiB
0.00.020.000 I load_tensors:   CPU_Mapped model buffer size =   300.00 MiB
0.00.031.000 I llama_kv_cache:      CUDA0 KV buffer size =    64.00 MiB
0.00.031.000 I llama_kv_cache:        CPU KV buffer size =     8.00 MiB
0.00.032.000 I sched_reserve:      CUDA1 compute buffer size =    28.00 MiB
0.00.032.000 I sched_reserve:  CUDA_Host compute buffer size =    12.00 MiB`;

const GPUS = [deviceId('GPU-a'), deviceId('GPU-b')];

const state = (devices = [] as typeof GPUS, gpuLayers = 0): EngineStateFile => ({
  residentId: residentId('r'),
  modelKey: modelKey('m'),
  artifact: 'Q8_0',
  driver: 'llama-server',
  pid: 1,
  bootId: 'b',
  port: 1,
  arguments: [],
  engine: { kind: 'llama-server', version: '1', build: 'x' },
  files: ['/m.gguf'],
  contract: {
    kind: 'chat',
    engine: { kind: 'llama-server', build: 'x' },
    rung: 'ram-only',
    contextTokens: 4096,
    slots: 1,
    kvType: 'f16',
    gpuLayers,
    cpuMoeLayers: 0,
    microBatch: 512,
    flashAttention: true,
    threads: 1,
    devices,
  },
  startedAt: '2026-01-01T00:00:00.000Z',
});

describe('the buffer lines of llama-server', () => {
  it('are summed per device: weights, cache, compute with the output', () => {
    expect(bytesByDevice(parseBufferLines(CPU_LOG), [])).toEqual([
      {
        deviceId: RAM,
        weightsBytes: Math.round(200.14 * MIB),
        kvBytes: 64 * MIB,
        computeBytes: Math.round(0.03 * MIB) + Math.round(28.51 * MIB),
      },
    ]);
  });

  it('are told apart by accelerator; pinned host memory is RAM', () => {
    expect(bytesByDevice(parseBufferLines(GPU_LOG), GPUS)).toEqual([
      { deviceId: RAM, weightsBytes: 300 * MIB, kvBytes: 8 * MIB, computeBytes: 12 * MIB },
      { deviceId: 'GPU-a', weightsBytes: 1000 * MIB, kvBytes: 64 * MIB, computeBytes: 0 },
      { deviceId: 'GPU-b', weightsBytes: 900 * MIB, kvBytes: 0, computeBytes: 28 * MIB },
    ]);
  });

  it('leave to the process what the system counts beyond them, never less than nothing', () => {
    const buffers = Math.round(0.03 * MIB) + 64 * MIB + Math.round(28.51 * MIB);
    const memory = measured(state(), CPU_LOG, {
      anonymousBytes: buffers + 5 * MIB,
      residentBytes: 400 * MIB,
    });
    expect(memory.byDevice[0]?.processBytes).toBe(5 * MIB);
    expect(memory).toMatchObject({ hostResidentBytes: 400 * MIB, contextTokens: 4096, slots: 1 });
    expect(measured(state(), CPU_LOG, { anonymousBytes: MIB }).byDevice[0]?.processBytes).toBe(0);
  });

  it('count tensors once that were copied out of the file, whoever else holds some of it', () => {
    const log = `load_tensors:        CUDA0 model buffer size =   100.00 MiB
load_tensors:   CPU_Mapped model buffer size =   250.00 MiB
load_tensors:   CPU_REPACK model buffer size =   150.00 MiB`;
    const of = (text: string, fileBytes: number) =>
      measured(state(GPUS.slice(0, 1), 9), text, { anonymousBytes: 160 * MIB }, fileBytes).byDevice;
    expect(of(log, 300 * MIB)).toMatchObject([
      { deviceId: RAM, weightsBytes: 200 * MIB, processBytes: 10 * MIB },
      { deviceId: 'GPU-a', weightsBytes: 100 * MIB },
    ]);
    // What was copied is there, whatever the file says now; without a copy, or a file, every line counts.
    expect(of(log, 10 * MIB)[0]?.weightsBytes).toBe(150 * MIB);
    expect(of(log, Infinity)[0]?.weightsBytes).toBe(400 * MIB);
    expect(of(log.replace('CPU_REPACK', 'CPU'), 300 * MIB)[0]?.weightsBytes).toBe(400 * MIB);
  });

  it('are missed aloud when the log has none', () => {
    expect(() => measured(state(), 'nothing', {})).toThrow('no buffer size');
  });

  it('show a plan for an accelerator that computes on the CPU', () => {
    expect(wrongPlacement(state(GPUS, 33), CPU_LOG)).toContain('33 layers');
    expect(wrongPlacement(state(GPUS, 17), GPU_LOG)).toBeUndefined();
    expect(wrongPlacement(state(), CPU_LOG)).toBeUndefined();
  });
});

describe('what llama-fit-params prints', () => {
  it('is one line per device, in whole MiB', () => {
    expect(parseFitPrint('CUDA0 1000 64 28\nHost 200 0 12\n', GPUS.slice(0, 1))).toEqual([
      { deviceId: RAM, weightsBytes: 200 * MIB, kvBytes: 0, computeBytes: 12 * MIB },
      { deviceId: 'GPU-a', weightsBytes: 1000 * MIB, kvBytes: 64 * MIB, computeBytes: 28 * MIB },
    ]);
  });

  it('is nothing when it prints nothing of that shape', () => {
    expect(parseFitPrint('-c 22784 -ngl -1\n', [])).toBeUndefined();
  });
});

describe('what llama-server lists and counts', () => {
  it('has accelerators, of which the CPU is none', () => {
    const text = `Available devices:
  CUDA0: NVIDIA H200 (143156 MiB, 142000 MiB free)
  Vulkan1: Some card (8192 MiB, 8000 MiB free)
  CPU: CPU (24105 MiB, 24105 MiB free)`;
    expect(parseDevices(text)).toEqual(['CUDA0', 'Vulkan1']);
  });

  it('adds requests at work and requests that wait', () => {
    const metrics = '# HELP x\nllamacpp:requests_processing 2\nllamacpp:requests_deferred 3\n';
    expect(parseInFlight(metrics)).toBe(5);
    expect(parseInFlight('')).toBeUndefined();
  });
});
