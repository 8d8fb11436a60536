import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { decisionId, RAM, residentId } from '#domain/ids.js';
import type { LiveTopic } from '#domain/wire/index.js';
import { SAMPLES } from '#events/testing/samples.js';
import { Story } from '#events/testing/story.js';
import { callView } from '../../apps/api/src/admin/calls/call.view.js';
import { decisionView } from '../../apps/api/src/admin/decisions/decision.view.js';
import { evictionView } from '../../apps/api/src/admin/evictions/eviction.view.js';
import { residentView } from '../../apps/api/src/admin/residents/resident.view.js';
import { LIVE_PREFIXES, LiveFold } from '../../apps/api/src/live/fold/live-fold.js';
import { foldBatch } from '../../apps/projector/src/rows/fold.js';
import { MemoryRows } from '../../apps/projector/src/testing/memory-rows.js';
import { drawEvents, recorded } from '../../apps/projector/src/testing/random-log.js';

const GIB = 1024 ** 3;

/** Loads, an eviction for room, one that fails, a load that fails, a crash, and calls of every kind. */
const story = () =>
  new Story()
    .machine(8 * GIB)
    .decided('a', 2 * GIB, 6 * GIB)
    .started('a')
    .ready('a', 2 * GIB)
    .decided('b', 5 * GIB, 4 * GIB, [{ name: 'a', bytes: 2 * GIB }])
    .evictionStarted('a', 'b')
    .evicted('a', 'b')
    .started('b')
    .worker({ type: 'LoadRestarted', data: { ...SAMPLES.LoadRestarted, residentId: residentId('b') } })
    .worker({ type: 'LoadFailed', data: { ...SAMPLES.LoadFailed, residentId: residentId('b') } })
    .loaded('c', GIB, 6 * GIB)
    .worker({
      type: 'ResidentRemeasured',
      data: { ...SAMPLES.ResidentRemeasured, residentId: residentId('c') },
    })
    .evictionStarted('c')
    .worker({
      type: 'EvictionFailed',
      data: { residentId: residentId('c'), reason: 'operator', why: 'busy', message: 'It was busy.' },
    })
    .loaded('d', GIB, 5 * GIB)
    .evictionStarted('d')
    .worker({ type: 'ResidentCrashed', data: { ...SAMPLES.ResidentCrashed, residentId: residentId('d') } })
    .worker({ type: 'PlacementRefused', data: SAMPLES.PlacementRefused })
    .decided('e', GIB, 5 * GIB)
    .worker({
      type: 'DecisionClosed',
      data: { ...SAMPLES.DecisionClosed, decisionId: decisionId('decision-e') },
    })
    .decided('f', GIB, 5 * GIB, [{ name: 'c', bytes: GIB }]);

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const byId = (id: string) => (a: unknown, b: unknown) =>
  String((a as Record<string, unknown>)[id]).localeCompare(String((b as Record<string, unknown>)[id]));

async function both(events: Story['events']) {
  const store = new MemoryRows();
  await foldBatch(store, events);
  const live = new LiveFold({ workers: [], catalogs: [] });
  const told = events
    .filter(({ stream }) => LIVE_PREFIXES.some((prefix) => stream.startsWith(prefix)))
    .flatMap((event) => live.apply(event));
  const of = (topic: LiveTopic, id: string) => [...(json(live.items(topic)) as unknown[])].sort(byId(id));
  return { store, live, told, of };
}

describe('what /live tells', () => {
  it('is what the lists of the management API say of the same log', async () => {
    const { events } = story();
    const { store, of, told } = await both(events);
    const residents = store
      .rows('residents')
      .filter((row) => row.phase !== 'ended')
      .map((row) =>
        residentView({ ...row, worker_name: store.rows('workers')[0]?.name ?? null, last_call_at: null }),
      );
    expect(of('residents', 'residentId')).toEqual(
      [...(json(residents) as unknown[])].sort(byId('residentId')),
    );
    const decisions = store.rows('decisions').map((row) => decisionView(row));
    expect(of('decisions', 'decisionId')).toEqual(
      [...(json(decisions) as unknown[])].sort(byId('decisionId')),
    );
    const evictions = store.rows('evictions').map((row) => evictionView(row));
    expect(of('evictions', 'evictionId')).toEqual(
      [...(json(evictions) as unknown[])].sort(byId('evictionId')),
    );
    const held = of('devices', 'deviceId').find((d) => (d as { deviceId: string }).deviceId === RAM);
    expect((held as { residentBytes: number }).residentBytes).toBeGreaterThan(0);
    expect(told.length).toBeGreaterThan(0);
  });

  it('keeps every call as the views keep it, ends before their starts and repetitions among them', async () => {
    for (const seed of [1, 2, 3]) {
      const { store, of } = await both(recorded(drawEvents(seed, 150)));
      const calls = store.rows('calls').map((row) => callView(row));
      expect(of('calls', 'callId')).toEqual([...(json(calls) as unknown[])].sort(byId('callId')));
    }
  });

  it('tells the items of its snapshot: applied one by one, changes make the same', async () => {
    for (const seed of [4, 5, 6]) {
      const { told, live } = await both(recorded(drawEvents(seed, 400)));
      const keyOf = {
        // In these logs two workers may have residents of one id.
        residents: (item: Record<string, unknown>) =>
          `${String(item['workerId'])} ${String(item['residentId'])}`,
        devices: (item: Record<string, unknown>) => `${String(item['workerId'])} ${String(item['deviceId'])}`,
      };
      for (const topic of ['residents', 'devices'] as const) {
        const made = new Map<string, unknown>();
        for (const change of told) {
          if (change.topic !== topic) continue;
          const item = change.item as unknown as Record<string, unknown>;
          if (item['phase'] === 'ended') made.delete(keyOf[topic](item));
          else made.set(keyOf[topic](item), item);
        }
        const items = live.items(topic) as unknown as Record<string, unknown>[];
        for (const item of items) expect(made.get(keyOf[topic](item))).toEqual(item);
        if (topic === 'residents') expect(made.size).toBe(items.length);
      }
    }
  });
});
