import fc from 'fast-check';
import { deviceId, type DeviceId, modelKey, RAM, residentId } from '#domain/ids.js';
import { EVICTION_ORDERS, RUNGS } from '#domain/placement-terms.js';
import { MIB } from '#domain/units.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { PlacementInput, ResidentActivity, Ticket } from '../contract.js';
import { GOALS } from '../settings.js';
import { defaultSettings } from '../setting-levels.js';
import {
  artifact,
  ask,
  attention,
  BUILT_IN,
  calls,
  contract,
  geometry,
  input,
  LLAMA_SERVER,
  measuredHistory,
  model,
  NOW_MS,
  ramBytes,
  resident,
  residents,
  ticket,
  worker,
} from './factories.js';

/** How often a property is tried; CI asks for more by its environment. */
export const RUNS = Number(
  (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env['FAST_CHECK_RUNS'] ??
    1000,
);

/** Time enough for that many on a machine that is busy with other things. */
export const TIMEOUT_MS = 60_000 + 60 * RUNS;

export const ASKER = 'asker';
const CARDS = [deviceId('gpu-a'), deviceId('gpu-b')];

interface Drawn {
  readonly resident: Resident;
  readonly activity: ResidentActivity;
  readonly pinned: boolean;
  readonly priority: number;
  readonly arrivals: readonly number[];
}

const drawnResident = (index: number, devices: readonly DeviceId[]): fc.Arbitrary<Drawn> =>
  fc
    .record({
      mib: fc.integer({ min: 1, max: 120 }),
      device: fc.constantFrom(...devices),
      phase: fc.constantFrom('ready', 'ready', 'ready', 'ready', 'planned', 'loading'),
      leaving: fc.integer({ min: 0, max: 9 }),
      callsInFlight: fc.constantFrom(0, 0, 0, 1),
      pinned: fc.constantFrom(false, false, false, true),
      priority: fc.constantFrom(0, 0, 1, 2),
      idle: fc.integer({ min: 0, max: 3000 }),
      arrivals: fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 8 }),
    })
    .map((d) => {
      const made = resident(`model-${index}`, {
        bytes: d.mib * MIB,
        device: d.device,
        residentId: residentId(`resident-${index}`),
        phase: d.phase,
        ...(d.leaving === 0 && d.phase === 'ready'
          ? { leaving: { reason: 'idle' as const, started: true, sinceRevision: 0 } }
          : {}),
      });
      return {
        resident: made,
        activity: {
          callsInFlight: d.phase === 'ready' ? d.callsInFlight : 0,
          lastCallEndedAtMs: NOW_MS - d.idle * 1000,
        },
        pinned: d.pinned,
        priority: d.priority,
        arrivals: [...d.arrivals].sort((a, b) => b - a).map((s) => NOW_MS - s * 1000),
      };
    });

const drawnGeometry = fc
  .record({
    blocks: fc.integer({ min: 1, max: 6 }),
    always: fc.integer({ min: 1, max: 24 }),
    experts: fc.constantFrom(0, 0, 20),
    output: fc.integer({ min: 1, max: 8 }),
    tied: fc.boolean(),
  })
  .map((g) =>
    geometry({
      trainedContextTokens: 16_384,
      blocks: Array.from({ length: g.blocks }, () => ({
        alwaysBytes: g.always * MIB,
        expertBytes: g.experts * MIB,
        cache: attention(),
      })),
      tokenEmbeddingBytes: g.output * MIB,
      outputBytes: g.tied ? 0 : g.output * MIB,
      tiedOutput: g.tied,
      expertCount: g.experts > 0 ? 8 : 0,
      expertUsedCount: g.experts > 0 ? 2 : 0,
    }),
  );

/**
 * A call to a model that is cold, or there under another ask, among up to eight other residents, with or without
 * accelerators; its ticket is not overdue.
 */
export const placementInput: fc.Arbitrary<PlacementInput> = fc
  .record({ cards: fc.integer({ min: 0, max: 2 }), residents: fc.integer({ min: 0, max: 8 }) })
  .chain(({ cards, residents: n }) => {
    const devices = [RAM, ...CARDS.slice(0, cards)];
    return fc.record({
      cards: fc.constant(cards),
      drawn: fc.tuple(...Array.from({ length: n }, (_, i) => drawnResident(i, devices))),
      ramMax: fc.integer({ min: 20, max: 600 }),
      cardMib: fc.integer({ min: 20, max: 400 }),
      foreign: fc.integer({ min: 0, max: 40 }),
      headroom: fc.integer({ min: 0, max: 40 }),
      driverMib: fc.constantFrom(0, 0, 8),
      settings: fc.array(fc.option(fc.integer({ min: 20, max: 400 }), { nil: undefined, freq: 2 }), {
        minLength: devices.length,
        maxLength: devices.length,
      }),
      own: fc.option(
        fc.record({ mib: fc.integer({ min: 1, max: 120 }), device: fc.constantFrom(...devices) }),
        {
          nil: undefined,
          freq: 2,
        },
      ),
      geometries: fc.array(drawnGeometry, { minLength: 1, maxLength: 2 }),
      rungs: fc.option(fc.uniqueArray(fc.constantFrom(...RUNGS), { minLength: 1 }), { nil: undefined }),
      priority: fc.constantFrom(0, 1, 2),
      goal: fc.constantFrom(...GOALS),
      evictionOrder: fc.constantFrom(...EVICTION_ORDERS),
      promptTokens: fc.integer({ min: 1, max: 12_000 }),
      queued: fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 3 }),
    });
  })
  .map((d) => {
    const asker = ticket(ASKER, { promptTokens: d.promptTokens, arrival: 10 });
    const queue = [
      ...d.queued.map((i, at) => ({
        ...ticket(`model-${i}`),
        callId: `queued-${at}` as Ticket['callId'],
        arrival: at,
      })),
      asker,
    ];
    const devices = [RAM, ...CARDS.slice(0, d.cards)];
    // Under another ask: it is replaced, and never reused.
    const own = d.own && {
      ...resident(ASKER, { bytes: d.own.mib * MIB, device: d.own.device }),
      residentId: residentId('resident-own'),
    };
    const state: WorkerState = worker({
      limits: {
        designation: new Map([[RAM, d.ramMax * MIB]]),
        setting: new Map(
          devices.flatMap((id, i) => {
            const mib = d.settings[i];
            return mib === undefined ? [] : [[id, mib * MIB] as const];
          }),
        ),
      },
      ramBytes: (d.ramMax + d.headroom) * MIB,
      engines: d.cards > 0 ? [LLAMA_SERVER] : [BUILT_IN],
      devices: CARDS.slice(0, d.cards).map((id) => ({
        deviceId: id,
        kind: 'cuda',
        name: 'card',
        totalBytes: (d.cardMib + d.driverMib) * MIB,
        driverReservedBytes: d.driverMib * MIB,
      })),
      foreign: new Map(devices.map((id) => [id, d.foreign * MIB])),
      physicalCores: 16,
      memoryBandwidth: { allGBps: 40, oneCoreGBps: 10 },
      residents: residents(
        ...d.drawn.map((r) => r.resident),
        ...(own ? [{ ...own, contract: { ...own.contract, kvType: 'q8_0' as const } }] : []),
      ),
      pins: new Set(d.drawn.filter((r) => r.pinned).map((r) => r.resident.modelKey)),
    });
    return input(ASKER, {
      worker: state,
      model: model(ASKER, {
        artifacts: d.geometries.map((g, i) => artifact({ label: i === 0 ? 'F16' : 'Q4_0', geometry: g })),
      }),
      ask: ask(d.rungs ? { allowedRungs: d.rungs } : {}),
      settings: { ...defaultSettings, priority: d.priority, goal: d.goal, evictionOrder: d.evictionOrder },
      residentPolicies: new Map(
        d.drawn.map((r) => [r.resident.modelKey, { ...defaultSettings, priority: r.priority }]),
      ),
      activity: new Map(d.drawn.map((r) => [r.resident.residentId, r.activity])),
      calls: new Map(
        d.drawn.map((r) => [
          r.resident.modelKey,
          calls(r.resident.modelKey, {
            arrivalsMs: r.arrivals,
            calls: r.arrivals.length,
            ...(r.arrivals[0] ? { firstArrivalMs: r.arrivals[0] } : {}),
          }),
        ]),
      ),
      ticket: asker,
      queue,
    });
  });

/** What the newcomer of `evictingInput` takes, measured. */
const NEWCOMER_BYTES = 100 * MIB;

/**
 * A machine without cards whose residents may all go, with less room than the newcomer takes, and enough of it when they
 * are gone: it is always placed, and never without an eviction.
 */
export const evictingInput: fc.Arbitrary<PlacementInput> = fc
  .record({
    mib: fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 12 }),
    roomMib: fc.integer({ min: 0, max: 99 }),
    idle: fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 12, maxLength: 12 }),
    evictionOrder: fc.constantFrom(...EVICTION_ORDERS),
  })
  .map(({ mib, roomMib, idle, evictionOrder }) => {
    // What is missing to the newcomer's need is held by the first.
    const others = mib.slice(1).reduce((sum, n) => sum + n, 0);
    const first = Math.max(mib[0] ?? 1, 100 - roomMib - others);
    const held = [first, ...mib.slice(1)];
    const list = held.map((n, i) =>
      resident(`model-${i}`, { bytes: n * MIB, residentId: residentId(`resident-${i}`) }),
    );
    const plan = contract({ contextTokens: 8192, threads: 15 });
    return input(ASKER, {
      worker: worker({
        ramMax: (held.reduce((sum, n) => sum + n, 0) + roomMib) * MIB,
        physicalCores: 16,
        residents: residents(...list),
      }),
      ask: ask({ context: 8192 }),
      history: measuredHistory(ASKER, plan, [ramBytes(NEWCOMER_BYTES)]),
      settings: { ...defaultSettings, evictionOrder },
      activity: new Map(
        list.map((r, i) => [
          r.residentId,
          { callsInFlight: 0, lastCallEndedAtMs: NOW_MS - (idle[i] ?? 0) * 1000 },
        ]),
      ),
    });
  });

/** A map or a set with its entries in another order. */
export const reversedMap = <K, V>(map: ReadonlyMap<K, V>): ReadonlyMap<K, V> => new Map([...map].reverse());
export const askerKey = modelKey(ASKER);
