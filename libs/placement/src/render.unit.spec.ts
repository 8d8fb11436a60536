import { describe, expect, it } from 'vitest';
import type { PlacementRefusedData } from '#domain/events/worker-events.js';
import { MIB } from '#domain/units.js';
import { decide } from './decide.js';
import { renderDecision } from './render.js';
import {
  ask,
  contract,
  decidedOf,
  input,
  measuredHistory,
  ramBytes,
  resident,
  residents,
  ticket,
  worker,
} from './testing/factories.js';

const B = 'tiny/b';
const measuredB = measuredHistory(B, contract(), [ramBytes(72 * MIB, 16 * MIB, 8 * MIB, 4 * MIB)], {
  eventId: '019aa2f4-7e1b-7c33-9d52-0f4b6ad5e001',
});

describe('renderDecision', () => {
  it('prints a load that evicts', () => {
    const state = worker({ residents: residents(resident('tiny/a')), ramMax: 199 * MIB });
    expect(renderDecision(decidedOf(decide(input(B, { worker: state, history: measuredB })))))
      .toMatchInlineSnapshot(`
        "Load tiny/b into RAM.
        Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-tiny/b.

        How
          artifact F16, placed ram-only: all of it in RAM
          engine built-in (build b1), 3 threads, 1 slot of 8,192 tokens, KV cache f16

        What it takes
          RAM  weights          72.0 MiB  measured [019aa2f4-7e1b-7c33-9d52-0f4b6ad5e001]
               KV cache         16.0 MiB  measured [019aa2f4-7e1b-7c33-9d52-0f4b6ad5e001]
               work buffers      8.0 MiB  measured [019aa2f4-7e1b-7c33-9d52-0f4b6ad5e001]
               process itself    4.0 MiB  measured [019aa2f4-7e1b-7c33-9d52-0f4b6ad5e001]
               together        100.0 MiB

        What was free
          RAM  99.0 MiB

        Who has to go
          tiny/a frees 100.0 MiB of RAM; expected loss 0.3 s
          The loss is what its next call would wait longer, weighed by how soon that is expected. No other
            choice would cost less, when what is freed beyond the need counts in its favour.

        Expected
          load 2.0 s, output time unknown (no call was measured yet)

        What was looked at
          F16 gpu-only: not offered, the worker has no accelerator
          F16 moe: not offered, the worker has no accelerator
          F16 4bit: not offered, the worker has no accelerator
          F16 ram-only, 8,192 tokens, takes 100.0 MiB, 99.0 MiB are free: chosen, fits after evicting tiny/a
          F16 max-ram: not offered, the worker has no accelerator
          F16 max-gpu: not offered, the worker has no accelerator

        The queue
          1 call waited; this call was number 1

        Decided from
          worker-worker-1 up to event 7
          goal quality, eviction order loss, rules version 7
          asked: context as long as calls need, KV cache f16, 1 slot
        "
      `);
  });

  it('prints a refusal', () => {
    const outcome = decide(input(B, { worker: worker({ ramMax: 60 * MIB }), history: measuredB }));
    expect(renderDecision((outcome as { data: PlacementRefusedData }).data)).toMatchInlineSnapshot(`
      "No place for tiny/b: model_cannot_fit.
      Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-tiny/b.

      Why
        tiny/b (F16, ram-only) cannot be placed on box at 4,096 tokens: needs 84.0 MiB of RAM, and its
          limit set at start is 60.0 MiB. Raise the limit, or choose a smaller artifact, context or KV
          type.

      What was free
        RAM  60.0 MiB

      What was looked at
        F16 gpu-only: not offered, the worker has no accelerator
        F16 moe: not offered, the worker has no accelerator
        F16 4bit: not offered, the worker has no accelerator
        F16 ram-only, 4,096 tokens, takes 84.0 MiB, 60.0 MiB are free: refused, needs 84.0 MiB of RAM, and
          its limit set at start is 60.0 MiB
        F16 max-ram: not offered, the worker has no accelerator
        F16 max-gpu: not offered, the worker has no accelerator

      The queue
        1 call waited; this call was number 1

      Decided from
        worker-worker-1 up to event 7
        goal quality, eviction order loss, rules version 7
        asked: context as long as calls need, KV cache f16, 1 slot
      "
    `);
  });

  it('says of a second resident which calls it is loaded for', () => {
    const data = decidedOf(decide(input(B, { history: measuredB, ask: ask({ context: 8192 }) })));
    const text = renderDecision({ ...data, forSlots: { waiting: 3, waitSeconds: 12 } });
    expect(text.split('\n').slice(2, 4)).toMatchInlineSnapshot(`
      [
        "Every slot of it is taken on another worker, where the last of 3 calls that wait would have one in",
        "  12 s: so it is loaded here too.",
      ]
    `);
    expect(renderDecision(data)).not.toContain('slot of it');
  });

  it('prints a wait', () => {
    const a = resident('tiny/a');
    const outcome = decide(
      input(B, {
        worker: worker({ residents: residents(a), ramMax: 150 * MIB }),
        history: measuredB,
        ask: ask({ context: 8192 }),
        ticket: ticket(B),
        activity: new Map([[a.residentId, { callsInFlight: 2, freeInSeconds: 12 }]]),
      }),
    );
    expect(outcome.kind).toBe('wait');
    expect(renderDecision((outcome as { refusal: PlacementRefusedData }).refusal)).toMatchInlineSnapshot(`
      "No place for tiny/b: placement_timeout.
      Decision decision-1, taken 2026-01-02T03:04:05.000Z for call call-to-tiny/b.

      Why
        tiny/b (F16, ram-only) needs 100.0 MiB of RAM, has 50.0 MiB free of 150.0 MiB; tiny/a holds 100.0
          MiB and has 2 calls on it; expected in 12 s

      What was free
        RAM  50.0 MiB

      What was looked at
        F16 gpu-only: not offered, the worker has no accelerator
        F16 moe: not offered, the worker has no accelerator
        F16 4bit: not offered, the worker has no accelerator
        F16 ram-only, 8,192 tokens, takes 100.0 MiB, 50.0 MiB are free: refused, needs 100.0 MiB of RAM,
          has 50.0 MiB free of 150.0 MiB; tiny/a holds 100.0 MiB and has 2 calls on it; expected in 12 s
        F16 max-ram: not offered, the worker has no accelerator
        F16 max-gpu: not offered, the worker has no accelerator

      Who could not be asked to go
        tiny/a has 2 calls on it

      The queue
        1 call waited; this call was number 1

      Decided from
        worker-worker-1 up to event 7
        goal quality, eviction order loss, rules version 7
        asked: context 8,192 tokens, KV cache f16, 1 slot
      "
    `);
  });
});
