import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import { type DeviceId, RAM, workerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { chargesOf, termsByDevice } from './charges.js';
import { callTokens } from './context.js';
import type { PlacementInput, PlacementOutcome } from './contract.js';
import { decide } from './decide.js';
import { acceleratorsOf } from './room.js';
import { placementPlanStillStands } from './still-stands.js';
import { evictingInput, placementInput, reversedMap, RUNS, TIMEOUT_MS } from './testing/arbitraries.js';
import { explore, must } from './testing/explored.js';
import { decidedOf } from './testing/factories.js';

vi.setConfig({ testTimeout: TIMEOUT_MS });

/** What a device may give to models: its smallest tier, less what other programs use beyond what that leaves. */
function mayGive(worker: WorkerState, deviceId: DeviceId): number {
  const { designation, setting } = worker.limits;
  const device = worker.devices.find((d) => d.deviceId === deviceId);
  const has =
    deviceId === RAM
      ? (worker.ramBytes ?? 0)
      : (device?.totalBytes ?? 0) - (device?.driverReservedBytes ?? 0);
  const limit = Math.min(has, designation.get(deviceId) ?? has, setting.get(deviceId) ?? has);
  return limit - Math.max(0, (worker.foreign.get(deviceId) ?? 0) - (has - limit));
}

/** What a device lacks for a decision when the named victims go; 0 or less when it fits. Counted afresh. */
function lacks(
  worker: WorkerState,
  data: PlacementDecidedData,
  victims: readonly string[],
  deviceId: DeviceId,
): number {
  const charges = chargesOf(worker);
  let held = 0;
  for (const [id, charge] of charges) if (!victims.includes(id)) held += charge.bytes.get(deviceId) ?? 0;
  const need = termsByDevice(data.need).get(deviceId) ?? 0;
  return held + need - mayGive(worker, deviceId);
}

const devicesOf = (worker: WorkerState): readonly DeviceId[] => [RAM, ...acceleratorsOf(worker)];

interface Decided {
  readonly given: PlacementInput;
  readonly outcome: PlacementOutcome;
  /** When it came to a decision. */
  readonly data: PlacementDecidedData | undefined;
  readonly text: string;
}

function decidedFrom(given: PlacementInput): Decided {
  const outcome = decide(given);
  const data = outcome.kind === 'decided' ? outcome.data : undefined;
  return { given, outcome, data, text: JSON.stringify(outcome) };
}

function shuffled(given: PlacementInput): PlacementInput {
  const { worker } = given;
  return {
    ...given,
    worker: {
      ...worker,
      // Of one worker the order of the last state is kept: of another it is made anew.
      workerId: workerId('another'),
      residents: reversedMap(worker.residents),
      devices: [...worker.devices].reverse(),
      foreign: reversedMap(worker.foreign),
    },
    calls: reversedMap(given.calls),
    activity: reversedMap(given.activity),
  };
}

function withMore(given: PlacementInput, bytes: number): PlacementInput {
  const { worker } = given;
  const larger: WorkerState = {
    ...worker,
    ramBytes: (worker.ramBytes ?? 0) + bytes,
    devices: worker.devices.map((d) => ({ ...d, totalBytes: d.totalBytes + bytes })),
    limits: {
      ...worker.limits,
      designation: new Map([...worker.limits.designation].map(([k, v]) => [k, v + bytes])),
      setting: new Map([...worker.limits.setting].map(([k, v]) => [k, v + bytes])),
    },
  };
  return { ...given, worker: larger };
}

const victimIds = (data: PlacementDecidedData): readonly string[] => data.victims.map((v) => v.residentId);

/** Without the model's own resident, which is replaced whether its room is needed or not. */
const othersIn = ({ modelKey, victims }: PlacementDecidedData): PlacementDecidedData['victims'] =>
  victims.filter((victim) => victim.modelKey !== modelKey);

function noneInVain({ data, given: { worker } }: Decided): void {
  if (!data) return;
  const victims = victimIds(data);
  for (const { residentId: spared } of othersIn(data)) {
    const others = victims.filter((id) => id !== spared);
    must(
      devicesOf(worker).some((device) => lacks(worker, data, others, device) > 0),
      () => `${spared} goes in vain`,
    );
  }
}

let decided = 0;

describe('whatever the state, a decision', () => {
  const { run } = explore(
    fc.tuple(placementInput, fc.constantFrom(1, 7, 64, 1000)),
    ([given, more]) => {
      const made = decidedFrom(given);
      if (made.data) decided += 1;
      return { ...made, more };
    },
    {
      'is the same for the same input': ({ given, text }) => {
        must(JSON.stringify(decide(given)) === text, () => 'it is another');
      },
      'does not change when residents and the rest are listed in another order': ({ given, text }) => {
        const other = JSON.stringify(decide(shuffled(given)));
        must(other === text, () => `${other}\nis not\n${text}`);
      },
      'never exceeds a limit': ({ data, given: { worker } }) => {
        if (!data) return;
        const touched = termsByDevice(data.need);
        for (const device of devicesOf(worker)) {
          if ((touched.get(device) ?? 0) === 0) continue;
          const over = lacks(worker, data, victimIds(data), device);
          must(over <= 0, () => `${over} bytes too many on ${device}`);
        }
      },
      'never takes a busy, loading, leaving, pinned or higher-band victim': ({ data, given }) => {
        for (const { residentId, modelKey } of data ? othersIn(data) : []) {
          const victim = given.worker.residents.get(residentId);
          const band = given.residentPolicies?.get(modelKey)?.priority ?? Infinity;
          must(victim?.phase === 'ready' && victim.leaving === undefined, () => `${residentId} is not ready`);
          must(given.activity.get(residentId)?.callsInFlight === 0, () => `${residentId} has calls on it`);
          must(!given.worker.pins.has(modelKey), () => `${modelKey} is pinned`);
          must(band <= given.settings.priority, () => `${modelKey} is in the higher band ${band}`);
        }
      },
      'takes no victim without need: without any one of them it does not fit': noneInVain,
      'takes no victim that a call ahead in the queue needs next': ({ data, given }) => {
        const ahead = new Set(given.queue.slice(0, -1).map((t) => t.modelKey));
        for (const { modelKey } of data?.victims ?? [])
          must(!ahead.has(modelKey), () => `${modelKey} is needed next`);
      },
      'evicts nobody unless it places the newcomer': ({ data, text, given: { worker } }) => {
        if (!data) must(!text.includes('"victims"'), () => 'it names victims');
        if (!data || othersIn(data).length === 0) return;
        for (const device of devicesOf(worker)) {
          const before = lacks(worker, { ...data, need: [] }, [], device);
          const after = lacks(worker, data, victimIds(data), device);
          // A device that was over its limit already, and that the plan does not touch, stays as it is.
          must(after <= Math.max(0, before), () => `it does not fit ${device} by ${after} bytes`);
        }
      },
      'is not turned from yes into no by more room': ({ data, given, more }) => {
        if (!data) return;
        const outcome = decide(withMore(given, more * 2 ** 20));
        const after = outcome.kind;
        // Where only a context shorter than the call could be had, more room may make a longer one worth waiting for.
        // Where more room lets a card be had soon, its answer may be worth waiting for.
        const mayWait =
          data.contract.contextTokens < callTokens(given.ticket) ||
          (outcome.kind === 'wait' && outcome.reason.includes(' is waited for: '));
        must(after === 'decided' || (mayWait && after === 'wait'), () => `with ${more} MiB more: ${after}`);
      },
      'stands against the state that it was made from': ({ data, given }) => {
        if (data) must(placementPlanStillStands(data, given.worker), () => 'it does not');
      },
      'stays below 64 KiB': ({ data, text }) => {
        if (data) must(text.length < 64 * 1024, () => `${text.length} characters`);
      },
    },
    RUNS,
  );

  it('is come to often enough for this to say something', () => {
    run();
    expect(decided).toBeGreaterThan(RUNS / 10);
  });
});

describe('where the newcomer fits, and not without an eviction, a decision', () => {
  explore(
    evictingInput,
    (given) => {
      const made = decidedFrom(given);
      return { ...made, data: decidedOf(made.outcome) };
    },
    {
      'takes victims, and none without need': (made) => {
        must(made.data.victims.length > 0, () => 'nobody goes');
        noneInVain(made);
      },
      'falls when a victim left meanwhile': ({ data, given: { worker } }) => {
        const [victim] = data.victims;
        const residents = new Map(worker.residents);
        if (victim) residents.delete(victim.residentId);
        must(!placementPlanStillStands(data, { ...worker, residents }), () => 'it stands');
      },
    },
    RUNS,
  );
});
