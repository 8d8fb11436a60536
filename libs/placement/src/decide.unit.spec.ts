import { describe, expect, it } from 'vitest';
import { callId, modelKey, RAM, residentId } from '#domain/ids.js';
import { classKey, placementClassOf } from '#domain/placement-terms.js';
import { planKey } from '#domain/worker/evolve.js';
import { MIB } from '#domain/units.js';
import type { PlacementOutcome, ResidentActivity, SoonnessOf } from './contract.js';
import { decide } from './decide.js';
import { soonness } from './loss.js';
import { defaultSettings } from './setting-levels.js';
import { POLICY_VERSION } from './working.js';
import {
  artifact,
  ask,
  calls,
  contract,
  decidedOf,
  geometry,
  history,
  input,
  isoBefore,
  LLAMA_SERVER,
  measuredHistory,
  model,
  NOW_MS,
  ramBytes,
  resident,
  residents,
  ticket,
  worker,
} from './testing/factories.js';

const A = 'tiny/a';
const B = 'tiny/b';
const measuredB = measuredHistory(B, contract(), [ramBytes(72 * MIB, 16 * MIB, 8 * MIB, 4 * MIB)]);

describe('a call to a resident model', () => {
  it('reuses a ready resident that satisfies the ask', () => {
    const outcome = decide(input(A, { worker: worker({ residents: residents(resident(A)) }) }));
    expect(outcome).toEqual({ kind: 'reuse', residentId: 'resident-of-tiny/a' });
  });

  it('is served by a resident of a lost worker that still answers', () => {
    const state = worker({ residents: residents(resident(A)), lost: true });
    expect(decide(input(A, { worker: state })).kind).toBe('reuse');
  });

  it('never uses a resident that is leaving', () => {
    const leaving = resident(A, { leaving: { reason: 'room', started: false, sinceRevision: 0 } });
    expect(decide(input(A, { worker: worker({ residents: residents(leaving) }) })).kind).not.toBe('reuse');
  });

  it('joins a load of the model that is under way', () => {
    const loading = resident(A, { phase: 'loading' });
    const outcome = decide(input(A, { worker: worker({ residents: residents(loading) }) }));
    expect(outcome).toEqual({ kind: 'join', residentId: 'resident-of-tiny/a' });
  });

  it('reloads it with a larger context when the call needs one, its own bytes being credit', () => {
    const small = resident(A, { contract: contract({ contextTokens: 4096 }), bytes: 90 * MIB });
    const outcome = decide(
      input(A, {
        worker: worker({ residents: residents(small), ramMax: 180 * MIB }),
        ticket: ticket(A, { promptTokens: 5000 }),
      }),
    );
    const data = decidedOf(outcome);
    expect(data.contract.contextTokens).toBe(8192);
    expect(data.victims.map((v) => v.residentId)).toEqual(['resident-of-tiny/a']);
    expect(data.victims[0]?.lossSeconds).toBe(0);
  });

  it('waits with the reload while a call is on it', () => {
    const small = resident(A, { contract: contract({ contextTokens: 4096 }) });
    const outcome = decide(
      input(A, {
        worker: worker({ residents: residents(small) }),
        ticket: ticket(A, { promptTokens: 5000 }),
        activity: new Map([[small.residentId, { callsInFlight: 1, freeInSeconds: 4 }]]),
      }),
    );
    expect(outcome).toMatchObject({ kind: 'wait', freeInSeconds: 4 });
  });

  it('is kept when no larger context could be had, since the estimate never refuses', () => {
    const small = resident(A, { contract: contract({ contextTokens: 4096 }), bytes: 90 * MIB });
    const outcome = decide(
      input(A, {
        worker: worker({ residents: residents(small), ramMax: 85 * MIB }),
        ticket: ticket(A, { promptTokens: 5000 }),
      }),
    );
    expect(outcome.kind).toBe('reuse');
  });
});

describe('a call to a cold model', () => {
  it('asks the engine for its projection first, when nothing was measured', () => {
    const outcome = decide(input(B, { unprojectable: new Set() }));
    expect(outcome).toMatchObject({ kind: 'project', wanted: [{ artifact: 'F16' }] });
  });

  it('is placed by the projection, each term with its event', () => {
    const klass = placementClassOf('F16', contract({ threads: 3 }));
    const projected = history(B, {
      projected: new Map([
        [
          classKey(klass),
          {
            value: { class: klass, byDevice: [ramBytes(72 * MIB, 16 * MIB, 8 * MIB)], source: 'built-in' },
            eventId: 'p1',
            at: isoBefore(1),
          },
        ],
      ]),
    });
    const data = decidedOf(decide(input(B, { history: projected, unprojectable: new Set() })));
    expect(data.need).toContainEqual({
      deviceId: RAM,
      term: 'weights',
      bytes: 72 * MIB,
      basis: 'projected',
      fromEvent: 'p1',
    });
  });

  it('is placed by what was measured before', () => {
    const data = decidedOf(decide(input(B, { history: measuredB, unprojectable: new Set() })));
    expect(data.need.map((t) => [t.term, t.bytes, t.basis, t.fromEvent])).toEqual([
      ['weights', 72 * MIB, 'measured', 'measured-tiny/b'],
      ['kv', 16 * MIB, 'measured', 'measured-tiny/b'],
      ['compute', 8 * MIB, 'measured', 'measured-tiny/b'],
      ['process', 4 * MIB, 'measured', 'measured-tiny/b'],
    ]);
  });

  it('loads into RAM with explicit numbers on a machine without accelerator', () => {
    const data = decidedOf(decide(input(B, { history: measuredB })));
    expect(data.rung).toBe('ram-only');
    expect(data.contract).toEqual(contract({ threads: 3 }));
    expect(data.devices).toEqual([]);
    expect(data.considered.map((c) => [c.rung, c.outcome])).toEqual([
      ['gpu-only', 'not-offered'],
      ['moe', 'not-offered'],
      ['4bit', 'not-offered'],
      ['ram-only', 'chosen'],
      ['max-ram', 'not-offered'],
      ['max-gpu', 'not-offered'],
    ]);
  });

  it('evicts nobody when it fits beside the others', () => {
    const state = worker({ residents: residents(resident(A)), ramMax: 200 * MIB });
    expect(decidedOf(decide(input(B, { worker: state, history: measuredB }))).victims).toEqual([]);
  });

  it('evicts the idle one when only one of two fits', () => {
    const state = worker({ residents: residents(resident(A)), ramMax: 199 * MIB });
    const data = decidedOf(decide(input(B, { worker: state, history: measuredB })));
    expect(data.victims).toEqual([
      {
        residentId: 'resident-of-tiny/a',
        modelKey: A,
        lossSeconds: expect.any(Number) as number,
        frees: [{ deviceId: RAM, bytes: 100 * MIB }],
      },
    ]);
    expect(data.room).toEqual([{ deviceId: RAM, bytes: 99 * MIB }]);
  });

  it('loses half as much with one whose model is ready on another worker too, and keeps that fact', () => {
    const a = resident(A);
    const decideWith = (more: Partial<ResidentActivity>) =>
      decidedOf(
        decide(
          input(B, {
            worker: worker({ residents: residents(a), ramMax: 150 * MIB }),
            history: measuredB,
            activity: new Map([[a.residentId, { callsInFlight: 0, ...more }]]),
          }),
        ),
      );
    const [alone, oneOfTwo] = [decideWith({}), decideWith({ alsoElsewhere: true })];
    expect(alone.victims[0]?.lossSeconds).toBeGreaterThan(0);
    expect(oneOfTwo.victims[0]?.lossSeconds).toBeCloseTo((alone.victims[0]?.lossSeconds ?? 0) / 2, 2);
    expect(alone.given?.activity).toEqual([]);
    expect(oneOfTwo.given?.activity).toEqual([{ residentId: a.residentId, calls: 0, alsoElsewhere: true }]);
  });

  it('goes by how soon a bench knows that models are wanted, and by their calls when it knows no more', () => {
    const C = 'tiny/c';
    const every = (seconds: number, key: string) =>
      calls(key, {
        calls: 9,
        arrivalsMs: [...Array(9).keys()].map((i) => NOW_MS - (9 - i) * seconds * 1000),
      });
    const known = new Map([every(20, A), every(900, C)].map((of) => [of.modelKey, of]));
    const state = worker({ residents: residents(resident(A), resident(C)), ramMax: 250 * MIB });
    const decideBy = (soonnessOf?: SoonnessOf) => {
      const more = soonnessOf ? { soonnessOf } : {};
      return decide(input(B, { worker: state, history: measuredB, calls: known, ...more }));
    };
    const victimsOf = (outcome: PlacementOutcome) => decidedOf(outcome).victims.map((v) => v.modelKey);
    const byHistory: SoonnessOf = (key, nowMs) => soonness(known.get(key), nowMs);
    expect(victimsOf(decideBy())).toEqual([C]);
    expect(decideBy(byHistory)).toEqual(decideBy());
    expect(victimsOf(decideBy((key, nowMs) => 1 - byHistory(key, nowMs)))).toEqual([A]);
  });

  it('waits for a busy one, and says who holds the room and for how long', () => {
    const a = resident(A);
    const state = worker({ residents: residents(a), ramMax: 150 * MIB });
    const outcome = decide(
      input(B, {
        worker: state,
        history: measuredB,
        activity: new Map([[a.residentId, { callsInFlight: 1, freeInSeconds: 12 }]]),
      }),
    );
    expect(outcome).toMatchObject({ kind: 'wait', freeInSeconds: 12 });
    expect(outcome).toHaveProperty(
      'reason',
      'tiny/b (F16, ram-only) needs 100.0 MiB of RAM, has 50.0 MiB free of 150.0 MiB; ' +
        'tiny/a holds 100.0 MiB and has a call on it; expected in 12 s',
    );
  });

  it('has a busy one drained once it is overdue', () => {
    const a = resident(A);
    const state = worker({ residents: residents(a), ramMax: 150 * MIB });
    const asker = ticket(B, { arrivedAtMs: NOW_MS - 61_000 });
    const outcome = decide(
      input(B, {
        worker: state,
        history: measuredB,
        ticket: asker,
        activity: new Map([[a.residentId, { callsInFlight: 1, freeInSeconds: 12 }]]),
      }),
    );
    const data = decidedOf(outcome);
    expect(data.victims.map((v) => v.residentId)).toEqual([a.residentId]);
    expect(data.predicted.readyInSeconds).toBe(12);
  });

  it('fails with what holds the room when it has waited its longest', () => {
    const a = resident(A);
    const outcome = decide(
      input(B, {
        worker: worker({ residents: residents(a), ramMax: 150 * MIB, pins: new Set([a.modelKey]) }),
        history: measuredB,
        ticket: ticket(B, { arrivedAtMs: NOW_MS - 600_000 }),
      }),
    );
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'placement_timeout' } });
    expect(outcome).toHaveProperty(
      'error.message',
      expect.stringContaining('tiny/a holds 100.0 MiB and is pinned'),
    );
  });

  it('is refused for good, with both figures, when it can never fit', () => {
    const outcome = decide(input(B, { worker: worker({ ramMax: 60 * MIB }), history: measuredB }));
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'model_cannot_fit' } });
    expect(outcome).toHaveProperty(
      'error.message',
      expect.stringMatching(/needs .* MiB of RAM, and its limit set at start is 60.0 MiB/),
    );
  });

  it('takes a smaller context before it gives up', () => {
    const data = decidedOf(decide(input(B, { worker: worker({ ramMax: 99 * MIB }), history: measuredB })));
    expect(data.contract.contextTokens).toBe(6144);
    expect(data.need.find((t) => t.term === 'kv')).toMatchObject({
      bytes: 12 * MIB,
      basis: 'measured+header',
    });
  });

  it('admits nothing while the reading of RAM is missing, and says so', () => {
    const outcome = decide(input(B, { worker: worker({ foreign: new Map() }), history: measuredB }));
    expect(outcome.kind).toBe('wait');
    expect(outcome).toHaveProperty(
      'reason',
      expect.stringContaining('the room of RAM is unknown: no reading yet'),
    );
  });

  it('does not take what a call ahead in the queue needs next', () => {
    const state = worker({ residents: residents(resident(A)), ramMax: 150 * MIB });
    const asker = ticket(B, { arrival: 2 });
    const outcome = decide(
      input(B, { worker: state, history: measuredB, ticket: asker, queue: [ticket(A), asker] }),
    );
    expect(outcome).toHaveProperty(
      'reason',
      expect.stringContaining('a call ahead in the queue needs it next'),
    );
  });

  it('takes it when that call is behind', () => {
    const state = worker({ residents: residents(resident(A)), ramMax: 150 * MIB });
    const asker = ticket(B);
    const outcome = decide(
      input(B, {
        worker: state,
        history: measuredB,
        ticket: asker,
        queue: [asker, ticket(A, { arrival: 2 })],
      }),
    );
    expect(decidedOf(outcome).victims).toHaveLength(1);
  });

  it('leaves the turn to an overdue call that waits for room', () => {
    const overdue = ticket('tiny/c', { arrivedAtMs: NOW_MS - 90_000 });
    const asker = ticket(B, { arrival: 2 });
    const outcome = decide(input(B, { history: measuredB, ticket: asker, queue: [overdue, asker] }));
    expect(outcome).toHaveProperty('reason', expect.stringContaining('a call to tiny/c is ahead'));
  });

  it('is not placed on a lost worker', () => {
    const outcome = decide(input(B, { worker: worker({ lost: true }) }));
    expect(outcome).toMatchObject({
      kind: 'refused',
      error: { code: 'worker_unavailable', retryAfterSeconds: expect.any(Number) as number },
    });
  });

  it('counts a plan that is not ready by its budget', () => {
    const planned = resident('tiny/c', {
      phase: 'planned',
      bytes: 90 * MIB,
      measured: undefined as never,
    });
    const state = worker({ residents: residents(planned), ramMax: 189 * MIB });
    expect(decide(input(B, { worker: state, history: measuredB, ask: ask({ context: 8192 }) })).kind).toBe(
      'wait',
    );
  });
});

describe('who may be evicted', () => {
  const policy = { priority: 0, pinned: false, minResidencySeconds: 0, idleEvictSeconds: 0 };
  /** A call of band 1 or `asker` to B, for which the only resident would have to go. */
  const against = (
    over: Partial<typeof policy>,
    asker = 0,
    state: Partial<Parameters<typeof worker>[0]> = {},
  ) =>
    decide(
      input(B, {
        worker: worker({ residents: residents(resident(A)), ramMax: 150 * MIB, ...state }),
        history: measuredB,
        settings: { ...defaultSettings, priority: asker },
        residentPolicies: new Map([[modelKey(A), { ...policy, ...over }]]),
      }),
    );

  it.each([
    [{ pinned: true }, 'is pinned'],
    [{ priority: 1 }, "is in the higher band 1 (the asker's is 0)"],
    [{ minResidencySeconds: 3601 }, 'is resident for 3600 s of at least 3601 s'],
    [{ idleEvictSeconds: 3601 }, 'is idle for 3600 s of at least 3601 s'],
  ])('%o keeps a resident, and the wait says so', (over, words) => {
    expect(against(over)).toMatchObject({ kind: 'wait' });
    expect(against(over)).toHaveProperty('reason', expect.stringContaining(words));
  });

  it.each([{ minResidencySeconds: 3600 }, { idleEvictSeconds: 3600 }])(
    '%o have passed after an hour',
    (over) => {
      expect(against(over).kind).toBe('decided');
    },
  );

  it.each([{ minResidencySeconds: 9999 }, { idleEvictSeconds: 9999 }, { priority: 1 }])(
    '%o does not hold against a call of a higher or the same band',
    (over) => {
      expect(against(over, 1).kind).toBe('decided');
    },
  );

  it('the band that a call asked for goes with the resident that it makes, and comes before the settings', () => {
    const asked = decide(input(B, { history: measuredB, callPriority: 4 }));
    expect(decidedOf(asked).priority).toBe(4);
    expect(decidedOf(decide(input(B, { history: measuredB }))).priority).toBeUndefined();
    const held = { residents: residents(resident(A, { priority: 4 })) };
    expect(against({ priority: 0 }, 3, held)).toHaveProperty(
      'reason',
      expect.stringContaining('is in the higher band 4'),
    );
    expect(against({ priority: 9 }, 4, held).kind).toBe('decided');
  });

  it('nobody, for what no call asked for', () => {
    const wish = {
      worker: worker({ residents: residents(resident(A)), ramMax: 150 * MIB }),
      history: measuredB,
    };
    expect(decide(input(B, wish)).kind).toBe('decided');
    expect(decide(input(B, { ...wish, cause: { kind: 'preload' } }))).toHaveProperty(
      'reason',
      expect.stringContaining('is not evicted for what no call asked for'),
    );
  });

  it('a pin of the operator holds against any band', () => {
    expect(against({}, 9, { pins: new Set([modelKey(A)]) })).toMatchObject({ kind: 'wait' });
  });
});

describe('a file whose header cannot be read', () => {
  const unread = model(B, {
    artifacts: [{ label: 'F16', files: [{ name: 'm.gguf', bytes: MIB }], complete: true }],
  });

  it('is tried only where nobody else is: all others go first', () => {
    const alone = decidedOf(decide(input(B, { model: unread })));
    expect(alone.need.map((t) => t.basis)).toEqual(['unknown', 'unknown']);
    const state = worker({ residents: residents(resident(A), resident('tiny/c')) });
    expect(decidedOf(decide(input(B, { model: unread, worker: state }))).victims).toHaveLength(2);
  });

  it('waits beside one that cannot go', () => {
    const state = worker({ residents: residents(resident(A)), pins: new Set([modelKey(A)]) });
    expect(decide(input(B, { model: unread, worker: state })).kind).toBe('wait');
  });
});

describe('files and engines at fault', () => {
  it('a broken artifact is refused with its words', () => {
    const broken = model(B, { artifacts: [artifact({ broken: 'the file ends before its tensors do' })] });
    const outcome = decide(input(B, { model: broken }));
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'bad_artifact' } });
    expect(outcome).toHaveProperty(
      'error.message',
      expect.stringContaining('the file ends before its tensors do'),
    );
  });

  it('the next artifact serves when the best one is broken', () => {
    const two = model(B, { artifacts: [artifact({ broken: 'cut off' }), artifact({ label: 'Q8_0' })] });
    expect(decidedOf(decide(input(B, { model: two }))).artifact).toBe('Q8_0');
  });

  it('no engine for the kind of model is said', () => {
    const state = worker({
      engines: [{ kind: 'built-in', version: '1', build: 'b1', capabilities: ['chat'] }],
    });
    const outcome = decide(input(B, { worker: state, model: model(B, { kind: 'embedding' }) }));
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'incompatible_engine' } });
    expect(outcome).toHaveProperty('error.message', expect.stringContaining('built-in lacks embedding'));
  });
});

describe('a rung that the worker does not have', () => {
  it('is refused with what it takes elsewhere, what is free there, and how to have it', () => {
    const outcome = decide(
      input(B, {
        worker: worker({ ramMax: 500 * MIB }),
        history: measuredB,
        ask: ask({ allowedRungs: ['gpu-only'] }),
      }),
    );
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'model_cannot_fit' } });
    expect(outcome).toHaveProperty(
      'error.message',
      'tiny/b has no way to be placed on box: gpu-only: the worker has no accelerator. ' +
        'F16 would fit box as ram-only, with 100.0 MiB of RAM (500.0 MiB are free): ' +
        'leave the rung out of the call, or allow it in the settings.',
    );
  });

  it('says what it lacks there when that would not do either', () => {
    const outcome = decide(
      input(B, {
        worker: worker({ ramMax: 50 * MIB }),
        history: measuredB,
        ask: ask({ allowedRungs: ['gpu-only'] }),
      }),
    );
    expect(outcome).toHaveProperty(
      'error.message',
      expect.stringMatching(/As ram-only it needs 84.0 MiB of RAM, and its limit set at start is 50.0 MiB/),
    );
  });
});

describe('a plan that failed before', () => {
  const failedWith = (cls: string, secondsAgo: number, roomBytes = 500 * MIB) => {
    const plan = { modelKey: modelKey(B), artifact: 'F16', contract: contract({ threads: 3 }) };
    return worker({
      ramMax: 500 * MIB,
      failedPlans: new Map([
        [
          planKey(plan),
          {
            modelKey: plan.modelKey,
            artifact: 'F16',
            class: cls,
            message: 'the engine said no',
            at: isoBefore(secondsAgo),
            times: 1,
            roomBytes: [{ deviceId: RAM, bytes: roomBytes }],
          },
        ],
      ]),
    });
  };

  it('is not tried again within its back-off: a smaller context is', () => {
    const outcome = decide(input(B, { worker: failedWith('out-of-memory', 5) }));
    expect(decidedOf(outcome).contract.contextTokens).toBe(6144);
  });

  it('is the refusal when nothing else is left, with its words and when to come back', () => {
    const outcome = decide(input(B, { worker: failedWith('exited', 5), ask: ask({ context: 8192 }) }));
    expect(outcome).toMatchObject({
      kind: 'refused',
      error: { code: 'model_load_failed', retryAfterSeconds: 25 },
    });
    expect(outcome).toHaveProperty('error.message', expect.stringContaining('the engine said no'));
  });

  it('is tried again when its back-off has passed', () => {
    const outcome = decide(input(B, { worker: failedWith('exited', 31), ask: ask({ context: 8192 }) }));
    expect(outcome.kind).toBe('decided');
  });

  it('is tried again when the room grew', () => {
    const outcome = decide(
      input(B, { worker: failedWith('out-of-memory', 5, 400 * MIB), ask: ask({ context: 8192 }) }),
    );
    expect(outcome.kind).toBe('decided');
  });

  it('ends the artifact when the file was at fault, at any context', () => {
    const outcome = decide(input(B, { worker: failedWith('bad-artifact', 5) }));
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'bad_artifact' } });
    expect(outcome).not.toHaveProperty('error.retryAfterSeconds');
  });

  it('ends the engine for the artifact when the two do not go together, and another engine serves', () => {
    const failed = failedWith('incompatible-engine', 5);
    expect(decide(input(B, { worker: failed }))).toMatchObject({
      kind: 'refused',
      error: { code: 'incompatible_engine' },
    });
    const other = { ...failed, engines: [LLAMA_SERVER] };
    expect(decidedOf(decide(input(B, { worker: other }))).contract.engine.kind).toBe('llama-server');
  });

  it('lets another artifact of the model go on', () => {
    const two = model(B, { artifacts: [artifact(), artifact({ label: 'Q8_0' })] });
    const outcome = decide(input(B, { worker: failedWith('bad-artifact', 5), model: two }));
    expect(decidedOf(outcome).artifact).toBe('Q8_0');
  });
});

describe('the context', () => {
  const long = model(B, { artifacts: [artifact({ geometry: geometry({ trainedContextTokens: 32_768 }) })] });

  it('is the smallest tick that covers the call, at least 8,192', () => {
    const at = (promptTokens: number): number =>
      decidedOf(decide(input(B, { model: long, ticket: ticket(B, { promptTokens }) }))).contract
        .contextTokens;
    expect([at(10), at(9000), at(13_000), at(90_000)]).toEqual([8192, 12_288, 16_384, 32_768]);
  });

  it('is used exactly when it is pinned', () => {
    expect(
      decidedOf(decide(input(B, { model: long, ask: ask({ context: 1000 }) }))).contract.contextTokens,
    ).toBe(1000);
  });

  it('is refused when it is pinned above what the model was trained for', () => {
    const outcome = decide(input(B, { model: long, ask: ask({ context: 40_000 }) }));
    expect(outcome).toMatchObject({ kind: 'refused', error: { code: 'context_length_exceeded' } });
  });

  it('is the trained one for an embedding model', () => {
    const embed = model(B, {
      kind: 'embedding',
      artifacts: [artifact({ geometry: geometry({ kind: 'embedding', trainedContextTokens: 512 }) })],
    });
    expect(decidedOf(decide(input(B, { model: embed }))).contract.contextTokens).toBe(512);
  });

  it('barred by a refused window is passed over for a smaller one while the room is no larger', () => {
    const klass = placementClassOf('F16', contract({ contextTokens: 0 }));
    const barred = history(B, {
      barred: new Map([
        [
          classKey(klass),
          {
            contextTokens: 8192,
            reason: 'no memory',
            roomBytes: [{ deviceId: RAM, bytes: 1e12 }],
            eventId: 'e',
          },
        ],
      ]),
    });
    expect(decidedOf(decide(input(B, { history: barred }))).contract.contextTokens).toBe(6144);
  });
});

describe('cores', () => {
  it('gives one thread on a machine of two cores, and makes a third load wait while two serve', () => {
    const a = resident(A);
    const c = resident('tiny/c');
    const serving = { callsInFlight: 1 };
    const two = worker({ physicalCores: 2, residents: residents(a, c) });
    expect(decidedOf(decide(input(B, { worker: two }))).contract.threads).toBe(1);
    const outcome = decide(
      input(B, {
        worker: two,
        activity: new Map([
          [a.residentId, serving],
          [c.residentId, serving],
        ]),
      }),
    );
    expect(outcome).toHaveProperty('reason', expect.stringContaining('0 of 2 cores are free'));
  });

  it('lets an overdue call load beside one that does not end, on a core that is shared', () => {
    const a = resident(A);
    const outcome = decide(
      input(B, {
        worker: worker({ physicalCores: 1, residents: residents(a) }),
        activity: new Map([[a.residentId, { callsInFlight: 1 }]]),
        ticket: ticket(B, { arrivedAtMs: NOW_MS - 61_000 }),
      }),
    );
    expect(decidedOf(outcome)).toMatchObject({ victims: [], contract: { threads: 1 } });
  });

  it('keeps one core for the system on larger machines', () => {
    expect(decidedOf(decide(input(B, { worker: worker({ physicalCores: 8 }) }))).contract.threads).toBe(7);
  });
});

describe('the record', () => {
  it('holds what the decision was made from', () => {
    const asker = ticket(B);
    const data = decidedOf(decide(input(B, { ticket: asker, queue: [asker, ticket(A, { arrival: 2 })] })));
    expect(data).toMatchObject({
      cause: { kind: 'call', callId: asker.callId },
      basedOn: [{ stream: 'worker-worker-1', revision: 7 }],
      queue: [
        { callId: asker.callId, place: 1 },
        { callId: callId('call-to-tiny/a'), place: 2 },
      ],
      now: '2026-01-02T03:04:05.000Z',
      validUntil: '2026-01-02T03:14:05.000Z',
      policy: { goal: 'quality', order: 'loss', version: POLICY_VERSION },
      residentId: residentId('resident-1'),
    });
  });

  it('stays below 64 KiB whatever the engines said', () => {
    const many = model(B, {
      artifacts: Array.from({ length: 200 }, (_, i) =>
        artifact({ label: `A${i}`, broken: 'x'.repeat(4000) }),
      ),
    });
    const outcome = decide(input(B, { model: many, settings: defaultSettings }));
    expect(JSON.stringify(outcome).length).toBeLessThan(64 * 1024);
    expect(outcome).toHaveProperty('data.consideredLeftOut', 136);
  });
});
