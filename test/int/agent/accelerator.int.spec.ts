import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeviceReading, ReadingsEvent } from '#domain/events/index.js';
import { deviceId } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import { checkInvariants } from '#events/check/invariants.js';
import { streams } from '#events/streams.js';
import { isAlive } from '#runtime/process-info.js';
import { PRESENT_HELP } from '../../../apps/worker-agent/src/engines/llama-server/help-samples.js';
import { FakeTools, oneCard } from '../../../apps/worker-agent/src/hardware/gpus/fake-tools.js';
import { AgentStand } from '../../support/agent-stand.js';
import { waitFor } from '../../support/wait.js';

const CARD = deviceId('GPU-1a2b3c4d-0000-0000-0000-000000000002');
/** A process that is not ours, and always there. */
const STRANGER = 1;

/** No card is here: a program of the name of NVIDIA's tool prints what it prints of one, and the agent takes it for one. */
describe('an agent on a machine with an accelerator', () => {
  const tools = new FakeTools().nvidia().llamaServer(PRESENT_HELP);
  const stand = new AgentStand({
    PATH: tools.path,
    BERTH_VRAM_MAX: '20GiB',
    BERTH_CPU_MAX: '1',
    BERTH_DISK_MAX: '1GiB',
  });
  const print = (...card: Parameters<typeof oneCard>) => {
    const { lines, report } = oneCard(...card);
    tools.print('report.xml', report).print('lines.csv', lines);
  };
  beforeAll(async () => {
    print(500, [[STRANGER, 400]]);
    await stand.start({ 'quay/a': 'chat-a', 'quay/b': 'chat-b' });
  });
  afterAll(async () => {
    await stand.endAgent();
    const violations = await checkInvariants(stand.log, { atRest: true });
    expect(await stand.stop()).toEqual([]);
    tools.remove();
    expect(violations).toEqual([]);
  }, 120_000);

  /** Waits for a reading of the card that the log keeps. */
  const kept = (what: string, holds: (card: DeviceReading) => boolean) =>
    waitFor(what, 40_000, async () => {
      const found = await stand.log.readBackwards<ReadingsEvent>(streams.readings(stand.worker), 10);
      return found.flatMap(({ event }) => event.data.devices.filter((d) => d.deviceId === CARD)).find(holds);
    });
  const charged = async () =>
    (await stand.of('ForeignUseChanged'))
      .filter((e) => e.deviceId === CARD)
      .map((e) => (e.bytes === undefined ? 'unknown' : e.bytes / MIB));

  it('prefers a llama-server that passes its probe, and has its own engine beside it', async () => {
    expect((await stand.of('WorkerRegistered'))[0]?.engines).toMatchObject([
      { kind: 'llama-server', version: '4321' },
      { kind: 'built-in' },
    ]);
  });

  it('writes the limits that it was started with', async () => {
    const limits = (await stand.of('LimitSet')).map(({ resource, tier, value }) => [resource, tier, value]);
    expect(limits).toEqual([
      ['cores', 'designation', 1],
      ['disk', 'designation', GIB],
      [CARD, 'designation', 20 * GIB],
    ]);
  });

  it('tells of the card once, and charges what others hold in steps that a wobble does not move', async () => {
    expect((await stand.of('CapacityMeasured'))[0]?.devices).toMatchObject([
      {
        deviceId: CARD,
        kind: 'cuda',
        totalBytes: 24564 * MIB,
        driverReservedBytes: 356 * MIB,
        computeCapability: '8.9',
      },
    ]);
    await waitFor('its first charge', 20_000, async () => (await charged()).length > 0);
    for (const used of [450, 511, 300]) {
      print(used, [[STRANGER, 400]]);
      await kept(`${used} MiB are read`, (card) => card.usedBytes === used * MIB);
    }
    print(700, [[STRANGER, 600]]);
    await waitFor('the rise is charged', 20_000, async () => (await charged()).includes(768));
    expect(await charged()).toEqual([512, 768]);
  });

  it('offers the memory of an engine that is gone when the driver has given it back, and not before', async () => {
    const victim = await stand.decide('quay/a');
    await stand.ready(victim);
    const { pid } = await stand.started(victim);
    // A driver tells its memory more often than who holds it: what is not known to be another's is not charged to others.
    tools.print('lines.csv', oneCard(1700, []).lines);
    const ahead = await kept('more is used', (card) => card.usedBytes === 1700 * MIB);
    expect(ahead.foreignBytes).toBe(700 * MIB);
    const held = [
      [STRANGER, 600],
      [pid, 1000],
    ] as const;
    tools.print('report.xml', oneCard(1690, held).report);
    // It is ours: nothing more is charged to others, and the reading says so.
    await kept('what it holds is read', (card) => card.foreignBytes === 690 * MIB);
    const newcomer = await stand.decide('quay/b', { victims: [victim] });
    await waitFor('the engine is gone', 20_000, () => !isAlive(pid));
    await kept('the driver still holds its memory', (card) => card.foreignBytes === 690 * MIB);
    expect(await stand.lifeOf(victim)).not.toContain('ResidentEvicted');
    expect(await stand.lifeOf(newcomer)).toEqual(['PlacementDecided']);
    print(700, [[STRANGER, 600]]);
    const evicted = await stand.until('ResidentEvicted', (e) => e.residentId === victim.residentId);
    expect(evicted.freed.find((f) => f.deviceId === CARD)).toEqual({ deviceId: CARD, bytes: 1000 * MIB });
    await stand.ready(newcomer);
    expect(await charged()).toEqual([512, 768]);
  });

  it('knows nothing of a driver that hangs, which is not nothing: no plan is begun there', async () => {
    tools.hang(true);
    const unknown = await kept('the reading is unknown', (card) => card.usedBytes === undefined);
    expect(unknown).not.toHaveProperty('foreignBytes');
    // Decisions know it too, and would not choose the card; one that did is not begun.
    await waitFor('the log says so', 20_000, async () => (await charged()).at(-1) === 'unknown');
    const placed = await stand.decide('quay/a', { needOn: CARD });
    const closed = await stand.until('DecisionClosed', (e) => e.decisionId === placed.decisionId);
    expect(closed).toMatchObject({
      why: 'agent-refused',
      reason: expect.stringContaining('no reading') as string,
    });
    expect(closed.roomRead).toEqual([{ deviceId: CARD }]);
    print(690, [[STRANGER, 590]]);
    tools.hang(false);
    await kept('it is read again', (card) => card.usedBytes === 690 * MIB);
    await waitFor('the log says so', 20_000, async () => (await charged()).at(-1) === 768);
    expect(await charged()).toEqual([512, 768, 'unknown', 768]);
  });
});
