import { describe, expect, it } from 'vitest';
import { deviceId, type DeviceId, RAM } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import type { Artifact } from '#domain/events/catalog-events.js';
import type { PlacementInput } from './contract.js';
import { decide } from './decide.js';
import { renderDecision } from './render.js';
import {
  artifact,
  ask,
  attention,
  contract,
  decidedOf,
  geometry,
  input,
  LLAMA_SERVER,
  measuredHistory,
  model,
  resident,
  residents,
  worker,
} from './testing/factories.js';

const A = deviceId('gpu-a');
const B = deviceId('gpu-b');
const M = 'big/m';

const blocks = (alwaysMib: number, expertMib: number): Artifact =>
  artifact({
    geometry: geometry({
      blocks: Array.from({ length: 10 }, () => ({
        alwaysBytes: alwaysMib * MIB,
        expertBytes: expertMib * MIB,
        cache: attention(),
      })),
      ...(expertMib > 0 ? { expertCount: 8, expertUsedCount: 2 } : {}),
    }),
  });

function text(
  cards: readonly (readonly [DeviceId, number])[],
  of: Artifact,
  over: Partial<PlacementInput> = {},
  ramMib = 4096,
): string {
  const state = worker({
    ramMax: ramMib * MIB,
    ramBytes: 64 * GIB,
    engines: [LLAMA_SERVER],
    physicalCores: 16,
    memoryBandwidth: { allGBps: 40, oneCoreGBps: 10 },
    devices: cards.map(([id, mib]) => ({ deviceId: id, kind: 'cuda', name: 'card', totalBytes: mib * MIB })),
    foreign: new Map([[RAM, 0], ...cards.map(([id]) => [id, 0] as const)]),
    residents: residents(resident('old/one', { bytes: 300 * MIB, device: cards[0]![0] })),
  });
  return renderDecision(
    decidedOf(decide(input(M, { worker: state, model: model(M, { artifacts: [of] }), ...over }))),
  );
}

describe('renderDecision on a machine with cards', () => {
  it('prints a load over two cards, which has somebody go', () => {
    const two = [
      [A, 800],
      [B, 600],
    ] as const;
    expect(text(two, blocks(100, 0), { ask: ask({ allowedRungs: ['gpu-only'] }) })).toMatchInlineSnapshot(`
      "Load big/m into RAM, gpu-a and gpu-b.
      Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-big/m.

      How
        artifact F16, placed gpu-only: all of it on accelerators, 11 layers on accelerators (6 blocks on
          gpu-a, 4 blocks and the output on gpu-b)
        engine llama-server (build ls1), 4 threads, 1 slot of 8,192 tokens, KV cache f16

      What it takes
        RAM    weights           4.0 MiB  from the file header
               KV cache              0 B  from the file header
               work buffers          0 B  estimated
               process itself          ?  unknown
               together          4.0 MiB  without what is unknown
        gpu-a  weights         600.0 MiB  from the file header
               KV cache         24.0 MiB  from the file header
               work buffers      7.0 MiB  estimated
               process itself          ?  unknown
               together        631.0 MiB  without what is unknown
        gpu-b  weights         404.0 MiB  from the file header
               KV cache         16.0 MiB  from the file header
               work buffers      7.0 MiB  estimated
               process itself          ?  unknown
               together        427.0 MiB  without what is unknown

      What was free
        RAM    4.00 GiB
        gpu-a  500.0 MiB
        gpu-b  600.0 MiB

      Who has to go
        old/one frees 300.0 MiB of gpu-a; expected loss 0.3 s
        The loss is what its next call would wait longer, weighed by how soon that is expected. No other
          choice would cost less, when what is freed beyond the need counts in its favour.

      Expected
        load 2.7 s, prompt and output 2.6 s

      What was looked at
        F16 gpu-only on gpu-b, 4,096 tokens, takes 1.01 GiB in all: refused, needs 1.01 GiB of device
          gpu-b, and its size is 600.0 MiB
        F16 gpu-only on gpu-a, 4,096 tokens, takes 1.01 GiB in all: refused, needs 1.01 GiB of device
          gpu-a, and its size is 800.0 MiB
        F16 gpu-only on gpu-a and gpu-b, 8,192 tokens, takes 1.04 GiB in all, answer expected after 5.3 s:
          chosen, fits after evicting old/one
        F16 moe: not offered, the settings or the call do not allow it
        F16 4bit: not offered, the settings or the call do not allow it
        F16 ram-only: not offered, the settings or the call do not allow it
        F16 max-ram: not offered, the settings or the call do not allow it
        F16 max-gpu: not offered, the settings or the call do not allow it

      The queue
        1 call waited; this call was number 1

      Decided from
        worker-worker-1 up to event 7
        goal quality, eviction order loss, rules version 7
        asked: context as long as calls need, KV cache f16, 1 slot, only as gpu-only
      "
    `);
  });

  it('prints a load over two cards that is sized by what was measured there, and another time with less context', () => {
    const cards = [
      [A, 800],
      [B, 600],
    ] as const;
    const before = contract({
      engine: { kind: 'llama-server', build: 'ls1' },
      rung: 'gpu-only',
      contextTokens: 4096,
      gpuLayers: 11,
      flashAttention: true,
      threads: 4,
      devices: [A, B],
      blocksByDevice: [6, 4],
    });
    const took = (deviceId: DeviceId, weights: number, kv: number, compute: number, process: number) => ({
      deviceId,
      weightsBytes: weights * MIB,
      kvBytes: kv * MIB,
      computeBytes: compute * MIB,
      processBytes: process * MIB,
    });
    const history = measuredHistory(
      M,
      before,
      [took(A, 601, 12, 9, 41), took(B, 405, 8, 10, 38), took(RAM, 4, 0, 1, 60)],
      { seconds: 7.5, eventId: 'event-42' },
    );
    expect(text(cards, blocks(100, 0), { ask: ask({ allowedRungs: ['gpu-only'] }), history }))
      .toMatchInlineSnapshot(`
        "Load big/m into RAM, gpu-a and gpu-b.
        Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-big/m.

        How
          artifact F16, placed gpu-only: all of it on accelerators, 11 layers on accelerators (6 blocks on
            gpu-a, 4 blocks and the output on gpu-b)
          engine llama-server (build ls1), 4 threads, 1 slot of 8,192 tokens, KV cache f16

        What it takes
          RAM    weights           4.0 MiB  measured at another setting, adapted by the header [event-42]
                 KV cache              0 B  measured at another setting, adapted by the header [event-42]
                 work buffers      1.0 MiB  measured at another setting, adapted by the header [event-42]
                 process itself   60.0 MiB  measured at another setting, adapted by the header [event-42]
                 together         65.0 MiB
          gpu-a  weights         601.0 MiB  measured at another setting, adapted by the header [event-42]
                 KV cache         24.0 MiB  measured at another setting, adapted by the header [event-42]
                 work buffers      9.0 MiB  measured at another setting, adapted by the header [event-42]
                 process itself   41.0 MiB  measured at another setting, adapted by the header [event-42]
                 together        675.0 MiB
          gpu-b  weights         405.0 MiB  measured at another setting, adapted by the header [event-42]
                 KV cache         16.0 MiB  measured at another setting, adapted by the header [event-42]
                 work buffers     10.0 MiB  measured at another setting, adapted by the header [event-42]
                 process itself   38.0 MiB  measured at another setting, adapted by the header [event-42]
                 together        469.0 MiB

        What was free
          RAM    4.00 GiB
          gpu-a  500.0 MiB
          gpu-b  600.0 MiB

        Who has to go
          old/one frees 300.0 MiB of gpu-a; expected loss 0.3 s
          The loss is what its next call would wait longer, weighed by how soon that is expected. No other
            choice would cost less, when what is freed beyond the need counts in its favour.

        Expected
          load 7.5 s, prompt and output 2.6 s

        What was looked at
          F16 gpu-only on gpu-b, 4,096 tokens, takes 1.11 GiB in all: refused, needs 1.05 GiB of device
            gpu-b, and its size is 600.0 MiB
          F16 gpu-only on gpu-a, 4,096 tokens, takes 1.11 GiB in all: refused, needs 1.05 GiB of device
            gpu-a, and its size is 800.0 MiB
          F16 gpu-only on gpu-a and gpu-b, 8,192 tokens, takes 1.18 GiB in all, answer expected after 10 s:
            chosen, fits after evicting old/one
          F16 moe: not offered, the settings or the call do not allow it
          F16 4bit: not offered, the settings or the call do not allow it
          F16 ram-only: not offered, the settings or the call do not allow it
          F16 max-ram: not offered, the settings or the call do not allow it
          F16 max-gpu: not offered, the settings or the call do not allow it

        The queue
          1 call waited; this call was number 1

        Decided from
          worker-worker-1 up to event 7
          goal quality, eviction order loss, rules version 7
          asked: context as long as calls need, KV cache f16, 1 slot, only as gpu-only
        "
      `);
    const same = ask({ allowedRungs: ['gpu-only'], context: 4096 });
    expect(text(cards, blocks(100, 0), { ask: same, history })).toMatchInlineSnapshot(`
      "Load big/m into RAM, gpu-a and gpu-b.
      Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-big/m.

      How
        artifact F16, placed gpu-only: all of it on accelerators, 11 layers on accelerators (6 blocks on
          gpu-a, 4 blocks and the output on gpu-b)
        engine llama-server (build ls1), 4 threads, 1 slot of 4,096 tokens, KV cache f16

      What it takes
        RAM    weights           4.0 MiB  measured [event-42]
               KV cache              0 B  measured [event-42]
               work buffers      1.0 MiB  measured [event-42]
               process itself   60.0 MiB  measured [event-42]
               together         65.0 MiB
        gpu-a  weights         601.0 MiB  measured [event-42]
               KV cache         12.0 MiB  measured [event-42]
               work buffers      9.0 MiB  measured [event-42]
               process itself   41.0 MiB  measured [event-42]
               together        663.0 MiB
        gpu-b  weights         405.0 MiB  measured [event-42]
               KV cache          8.0 MiB  measured [event-42]
               work buffers     10.0 MiB  measured [event-42]
               process itself   38.0 MiB  measured [event-42]
               together        461.0 MiB

      What was free
        RAM    4.00 GiB
        gpu-a  500.0 MiB
        gpu-b  600.0 MiB

      Who has to go
        old/one frees 300.0 MiB of gpu-a; expected loss 0.3 s
        The loss is what its next call would wait longer, weighed by how soon that is expected. No other
          choice would cost less, when what is freed beyond the need counts in its favour.

      Expected
        load 7.5 s, prompt and output 2.6 s

      What was looked at
        F16 gpu-only on gpu-b, 4,096 tokens, takes 1.11 GiB in all: refused, needs 1.05 GiB of device
          gpu-b, and its size is 600.0 MiB
        F16 gpu-only on gpu-a, 4,096 tokens, takes 1.11 GiB in all: refused, needs 1.05 GiB of device
          gpu-a, and its size is 800.0 MiB
        F16 gpu-only on gpu-a and gpu-b, 4,096 tokens, takes 1.16 GiB in all, answer expected after 10 s:
          chosen, fits after evicting old/one
        F16 moe: not offered, the settings or the call do not allow it
        F16 4bit: not offered, the settings or the call do not allow it
        F16 ram-only: not offered, the settings or the call do not allow it
        F16 max-ram: not offered, the settings or the call do not allow it
        F16 max-gpu: not offered, the settings or the call do not allow it

      The queue
        1 call waited; this call was number 1

      Decided from
        worker-worker-1 up to event 7
        goal quality, eviction order loss, rules version 7
        asked: context 4,096 tokens, KV cache f16, 1 slot, only as gpu-only
      "
    `);
  });

  it('prints experts that are split between a card and RAM', () => {
    expect(text([[A, 1300]], blocks(20, 200), { ask: ask({ allowedRungs: ['moe'] }) }))
      .toMatchInlineSnapshot(`
        "Load big/m into RAM and gpu-a.
        Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-big/m.

        How
          artifact F16, placed moe: experts in RAM, the rest on an accelerator, 11 layers on accelerators,
            experts of 7 layers in RAM
          engine llama-server (build ls1), 15 threads, 1 slot of 8,192 tokens, KV cache f16

        What it takes
          RAM    weights          1.37 GiB  from the file header
                 KV cache              0 B  from the file header
                 work buffers          0 B  estimated
                 process itself          ?  unknown
                 together         1.37 GiB  without what is unknown
          gpu-a  weights         804.0 MiB  from the file header
                 KV cache         40.0 MiB  from the file header
                 work buffers      7.0 MiB  estimated
                 process itself          ?  unknown
                 together        851.0 MiB  without what is unknown

        What was free
          RAM    4.00 GiB
          gpu-a  1000.0 MiB

        Who has to go
          nobody

        Expected
          load 3.5 s, prompt and output 5.2 s

        What was looked at
          F16 gpu-only: not offered, the settings or the call do not allow it
          F16 moe on gpu-a, 8,192 tokens, takes 2.20 GiB in all, answer expected after 8.7 s: chosen, fits
          F16 4bit: not offered, the settings or the call do not allow it
          F16 ram-only: not offered, the settings or the call do not allow it
          F16 max-ram: not offered, the settings or the call do not allow it
          F16 max-gpu: not offered, the settings or the call do not allow it

        The queue
          1 call waited; this call was number 1

        Decided from
          worker-worker-1 up to event 7
          goal quality, eviction order loss, rules version 7
          asked: context as long as calls need, KV cache f16, 1 slot, only as moe
        "
      `);
  });

  it('prints RAM filled first, with the overflow on a card', () => {
    expect(text([[A, 900]], blocks(100, 0), { ask: ask({ allowedRungs: ['max-ram'] }) }, 700))
      .toMatchInlineSnapshot(`
        "Load big/m into RAM and gpu-a.
        Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-big/m.

        How
          artifact F16, placed max-ram: RAM first, the overflow on accelerators, 5 layers on accelerators
          engine llama-server (build ls1), 15 threads, 1 slot of 8,192 tokens, KV cache f16

        What it takes
          RAM    weights         604.0 MiB  from the file header
                 KV cache         24.0 MiB  from the file header
                 work buffers      7.0 MiB  estimated
                 process itself          ?  unknown
                 together        635.0 MiB  without what is unknown
          gpu-a  weights         404.0 MiB  from the file header
                 KV cache         16.0 MiB  from the file header
                 work buffers      7.0 MiB  estimated
                 process itself          ?  unknown
                 together        427.0 MiB  without what is unknown

        What was free
          RAM    700.0 MiB
          gpu-a  600.0 MiB

        Who has to go
          nobody

        Expected
          load 2.7 s, prompt and output 7.7 s

        What was looked at
          F16 gpu-only: not offered, the settings or the call do not allow it
          F16 moe: not offered, the settings or the call do not allow it
          F16 4bit: not offered, the settings or the call do not allow it
          F16 ram-only: not offered, the settings or the call do not allow it
          F16 max-ram on gpu-a, 8,192 tokens, takes 1.04 GiB in all, answer expected after 10 s: chosen,
            fits
          F16 max-gpu: not offered, the settings or the call do not allow it

        The queue
          1 call waited; this call was number 1

        Decided from
          worker-worker-1 up to event 7
          goal quality, eviction order loss, rules version 7
          asked: context as long as calls need, KV cache f16, 1 slot, only as max-ram
        "
      `);
  });
});
