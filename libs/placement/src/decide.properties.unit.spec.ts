import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { chargesOf, termsByDevice } from './charges.js';
import { callTokens } from './context.js';
import type { PlacementInput } from './contract.js';
import { decide } from './decide.js';
import { acceleratorsOf, roomOf } from './room.js';
import { placementPlanStillStands } from './still-stands.js';
import { evictingInput, placementInput, reversedMap, RUNS, TIMEOUT_MS } from './testing/arbitraries.js';
import { decidedOf } from './testing/factories.js';

vi.setConfig({ testTimeout: TIMEOUT_MS });
const runs = { numRuns: RUNS };

/** What a device lacks for a decision when the named victims go; 0 or less when it fits. Counted afresh. */
function lacks(
  worker: WorkerState,
  data: PlacementDecidedData,
  victims: readonly string[],
  deviceId: DeviceId,
): number {
  const charges = chargesOf(worker);
  const room = roomOf(worker, deviceId);
  let held = 0;
  for (const [id, charge] of charges) if (!victims.includes(id)) held += charge.bytes.get(deviceId) ?? 0;
  const need = termsByDevice(data.need).get(deviceId) ?? 0;
  return held + need + room.encroachmentBytes - (room.limitBytes ?? 0);
}

const devicesOf = (worker: WorkerState): readonly DeviceId[] => [RAM, ...acceleratorsOf(worker)];

/** Runs a check on every input that comes to a decision, and sees that enough of them do. */
function whenDecided(check: (data: PlacementDecidedData, given: PlacementInput) => void): void {
  let decided = 0;
  fc.assert(
    fc.property(placementInput, (given) => {
      const outcome = decide(given);
      if (outcome.kind !== 'decided') return;
      decided += 1;
      check(outcome.data, given);
    }),
    runs,
  );
  expect(decided).toBeGreaterThan(RUNS / 10);
}

/** The same on inputs that are made so that the newcomer fits, and not without an eviction. */
function whenEvicting(check: (data: PlacementDecidedData, given: PlacementInput) => void): void {
  fc.assert(
    fc.property(evictingInput, (given) => {
      const data = decidedOf(decide(given));
      expect(data.victims.length).toBeGreaterThan(0);
      check(data, given);
    }),
    runs,
  );
}

describe('whatever the state, a decision', () => {
  it('is the same for the same input', () => {
    fc.assert(
      fc.property(placementInput, (given) => {
        expect(JSON.stringify(decide(given))).toBe(JSON.stringify(decide(given)));
      }),
      runs,
    );
  });

  it('does not change when residents and the rest are listed in another order', () => {
    fc.assert(
      fc.property(placementInput, (given) => {
        const shuffled: PlacementInput = {
          ...given,
          worker: {
            ...given.worker,
            residents: reversedMap(given.worker.residents),
            devices: [...given.worker.devices].reverse(),
            foreign: reversedMap(given.worker.foreign),
          },
          calls: reversedMap(given.calls),
          activity: reversedMap(given.activity),
        };
        expect(JSON.stringify(decide(shuffled))).toBe(JSON.stringify(decide(given)));
      }),
      runs,
    );
  });

  it('never exceeds a limit', () => {
    whenDecided((data, { worker }) => {
      const victims = data.victims.map((v) => v.residentId);
      const touched = termsByDevice(data.need);
      for (const device of devicesOf(worker)) {
        if ((touched.get(device) ?? 0) > 0)
          expect(lacks(worker, data, victims, device)).toBeLessThanOrEqual(0);
      }
    });
  });

  it('never takes a busy, loading, leaving, pinned or higher-band victim', () => {
    whenDecided((data, given) => {
      for (const { residentId, modelKey } of data.victims) {
        const victim = given.worker.residents.get(residentId);
        expect(victim?.phase).toBe('ready');
        expect(victim?.leaving).toBeUndefined();
        expect(given.activity.get(residentId)?.callsInFlight).toBe(0);
        expect(given.worker.pins.has(modelKey)).toBe(false);
        expect(given.residentPolicies?.get(modelKey)?.priority).toBeLessThanOrEqual(given.settings.priority);
      }
    });
  });

  it('takes no victim without need: without any one of them it does not fit', () => {
    const check = (data: PlacementDecidedData, { worker }: PlacementInput): void => {
      const victims = data.victims.map((v) => v.residentId);
      for (const spared of victims) {
        const others = victims.filter((id) => id !== spared);
        expect(devicesOf(worker).some((device) => lacks(worker, data, others, device) > 0)).toBe(true);
      }
    };
    whenDecided(check);
    whenEvicting(check);
  });

  it('takes no victim that a call ahead in the queue needs next', () => {
    whenDecided((data, given) => {
      const ahead = new Set(given.queue.slice(0, -1).map((t) => t.modelKey));
      for (const victim of data.victims) expect(ahead.has(victim.modelKey)).toBe(false);
    });
  });

  it('evicts nobody unless it places the newcomer', () => {
    fc.assert(
      fc.property(placementInput, (given) => {
        const outcome = decide(given);
        if (outcome.kind !== 'decided') expect(outcome).not.toHaveProperty('data.victims');
      }),
      runs,
    );
  });

  it('is not turned from yes into no by more room', () => {
    fc.assert(
      fc.property(placementInput, fc.constantFrom(1, 7, 64, 1000), (given, more) => {
        const before = decide(given);
        if (before.kind !== 'decided') return;
        const { worker } = given;
        const larger: WorkerState = {
          ...worker,
          ramBytes: (worker.ramBytes ?? 0) + more * 2 ** 20,
          devices: worker.devices.map((d) => ({ ...d, totalBytes: d.totalBytes + more * 2 ** 20 })),
          limits: {
            ...worker.limits,
            designation: new Map([...worker.limits.designation].map(([k, v]) => [k, v + more * 2 ** 20])),
          },
        };
        const after = decide({ ...given, worker: larger });
        // Where only a context shorter than the call could be had, more room may make a longer one worth waiting for.
        if (before.data.contract.contextTokens >= callTokens(given.ticket))
          expect(after.kind).toBe('decided');
        else expect(['decided', 'wait']).toContain(after.kind);
      }),
      runs,
    );
  });

  it('stands against the state that it was made from', () => {
    whenDecided((data, { worker }) => {
      expect(placementPlanStillStands(data, worker)).toBe(true);
    });
  });

  it('falls when a victim left or the model was placed meanwhile', () => {
    whenEvicting((data, { worker }) => {
      const [victim] = data.victims;
      if (!victim) throw new Error('a victim was to be drawn');
      const residents = new Map(worker.residents);
      residents.delete(victim.residentId);
      expect(placementPlanStillStands(data, { ...worker, residents })).toBe(false);
    });
  });

  it('stays below 64 KiB', () => {
    whenDecided((data) => {
      expect(JSON.stringify(data).length).toBeLessThan(64 * 1024);
    });
  });
});
