import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CatalogEvent } from '#domain/events/index.js';
import { decisionId, modelKey, RAM } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import { checkInvariants } from '#events/check/invariants.js';
import { streams } from '#events/streams.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { isAlive } from '#runtime/process-info.js';
import { makeModel } from '../../../apps/worker-agent/src/make-model/index.js';
import { AgentStand, type Placed } from '../../support/agent-stand.js';
import { processesOf } from '../../support/stack.js';
import { waitFor } from '../../support/wait.js';

/** The agent alone against a real log with a real engine; the test takes the decisions that an api would. */
describe('the worker agent', { timeout: 120_000 }, () => {
  const stand = new AgentStand();
  beforeAll(async () => {
    await stand.start({
      'quay/a': 'chat-a',
      'quay/b': 'chat-b',
      'quay/big': { preset: 'big', sizeMb: 150 },
    });
  });
  afterEach(async () => {
    expect(stand.agent?.exitCode).toBeNull();
    expect(await checkInvariants(stand.log, { atRest: false })).toEqual([]);
  });
  afterAll(async () => {
    await stand.endAgent();
    const violations = await checkInvariants(stand.log, { atRest: true });
    expect(await stand.stop()).toEqual([]);
    expect(violations).toEqual([]);
  });

  const pidOf = async (placed: Placed) => (await stand.started(placed)).pid;
  const readyResidents = async () => {
    const ended = new Set((await stand.of('ResidentEvicted')).map((e) => e.residentId as string));
    (await stand.of('ResidentCrashed')).forEach((e) => ended.add(e.residentId));
    (await stand.of('ResidentFoundGone')).forEach((e) => ended.add(e.residentId));
    return (await stand.of('ResidentReady'))
      .filter((e) => !ended.has(e.residentId))
      .map((e) => ({ residentId: e.residentId, decisionId: decisionId('') }));
  };

  it('says what the machine is, and only once', async () => {
    const [capacity] = await stand.of('CapacityMeasured');
    expect(capacity!.ramBytes).toBeGreaterThan(GIB);
    expect(capacity!.physicalCores).toBeGreaterThan(0);
    expect(capacity!.cpuTopology?.length).toBeGreaterThanOrEqual(capacity!.physicalCores);
    // Where the models lie.
    expect(capacity!.drives[0]?.freeBytes).toBeGreaterThan(0);
    expect(capacity!.drives[0]?.totalBytes).toBeGreaterThan(capacity!.drives[0]?.freeBytes ?? 0);
    await stand.endAgent();
    await stand.startAgent();
    expect(await stand.of('WorkerRegistered')).toHaveLength(1);
    expect(await stand.of('CapacityMeasured')).toHaveLength(1);
  });

  it('is alone on its home: a second agent does not start, and says why', async () => {
    await expect(stand.forkAgent()).rejects.toThrow(/An agent already runs on .*BERTH_HOME of its own/);
    expect(await stand.of('WorkerRegistered')).toHaveLength(1);
  });

  it('tells the log of a model that is put into its folder, exchanged and removed while it runs', async () => {
    const file = stand.fileOf('quay/new');
    const told = async () => {
      const events = await stand.log.readBackwards<CatalogEvent>(streams.catalog(stand.worker), 30);
      return events.flatMap(({ event: { type, data } }) =>
        data.modelKey === 'quay/new' && type !== 'WeightsHashed' ? [type] : [],
      );
    };
    // Far below the ten minutes after which everything is looked at anyway: it is the watch that told.
    const newest = (type: string) => waitFor(type, 60_000, async () => (await told())[0] === type);
    await makeModel({ preset: 'chat-a', file: join(stand.home, 'new.gguf') });
    await makeModel({ preset: 'embed', file: join(stand.home, 'other.gguf') });
    mkdirSync(dirname(file), { recursive: true });
    renameSync(join(stand.home, 'new.gguf'), file);
    await newest('ModelFound');
    renameSync(join(stand.home, 'other.gguf'), file);
    await newest('ModelChanged');
    rmSync(file);
    await newest('ModelGone');
    expect(await told()).toEqual(['ModelGone', 'ModelChanged', 'ModelFound']);
  });

  it('loads what the log decides, measures it, and keeps the figures in the history of the pair', async () => {
    const placed = await stand.decide('quay/a');
    const { measured } = await stand.ready(placed);
    expect(measured.contextTokens).toBe(2048);
    expect(measured.byDevice[0]!.weightsBytes).toBeGreaterThan(100_000);
    expect(measured.byDevice[0]!.kvBytes).toBeGreaterThan(0);
    const history = await waitFor('the measurement', 5000, async () => {
      const [last] = await stand.log.readBackwards(streams.history(stand.worker, modelKey('quay/a')), 1);
      return last;
    });
    expect(history.event.type).toBe('LoadMeasured');
    expect(isAlive(await pidOf(placed))).toBe(true);
  });

  it('stops a victim before it loads the newcomer', async () => {
    const victims = await readyResidents();
    const placed = await stand.decide('quay/b', { victims });
    await stand.ready(placed);
    const order = (await stand.all())
      .filter((e) => e.metadata.$correlationId === placed.decisionId)
      .map((e) => e.event.type);
    expect(order).toEqual([
      'PlacementDecided',
      'EvictionStarted',
      'ResidentEvicted',
      'LoadStarted',
      'ResidentReady',
    ]);
  });

  it('closes a decision whose need is above the room that it reads, and touches nothing for it', async () => {
    const before = processesOf(stand.home).length;
    // Within the limit by the log's figures, and more than the machine has left beside everything else that runs on it.
    const { ramBytes } = (await stand.of('CapacityMeasured'))[0]!;
    const placed = await stand.decide('quay/a', { needBytes: ramBytes - 384 * MIB });
    const closed = await stand.until('DecisionClosed', (e) => e.decisionId === placed.decisionId);
    expect(closed.why).toBe('agent-refused');
    expect(closed.roomRead?.[0]?.bytes).toBeGreaterThan(0);
    expect(closed.reason).toMatch(/GiB/);
    expect(processesOf(stand.home).length).toBe(before);
  });

  it('closes a decision that is out of date', async () => {
    const placed = await stand.decide('quay/a', { validForMs: -1 });
    expect((await stand.until('DecisionClosed', (e) => e.decisionId === placed.decisionId)).why).toBe(
      'expired',
    );
  });

  it('says why a load failed when its files are not there', async () => {
    const placed = await stand.decide('quay/none');
    const failed = await stand.until('LoadFailed', (e) => e.residentId === placed.residentId);
    expect(failed.class).toBe('bad-artifact');
    expect(failed.message).toContain('quay/none');
  });

  it('records an engine that was killed', async () => {
    const placed = await stand.decide('quay/a');
    await stand.ready(placed);
    process.kill(await pidOf(placed), 'SIGKILL');
    const crashed = await stand.until('ResidentCrashed', (e) => e.residentId === placed.residentId);
    expect(crashed).toMatchObject({ signal: 'SIGKILL', during: 'unknown' });
  });

  it('tells one end of a victim whose engine dies while it is evicted', async () => {
    const victim = await stand.decide('quay/a');
    await stand.ready(victim);
    const pid = await pidOf(victim);
    const placed = await stand.decide('quay/b', { victims: [victim] });
    await stand.until('EvictionStarted', (e) => e.residentId === victim.residentId);
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    await stand.ready(placed);
    const ends = (await stand.all()).filter(
      ({ event }) =>
        (event.type === 'ResidentEvicted' || event.type === 'ResidentCrashed') &&
        event.data.residentId === victim.residentId,
    );
    expect(ends).toHaveLength(1);
  });

  it('acts on a decision that was taken while no agent was there', async () => {
    await stand.endAgent();
    const placed = await stand.decide('quay/a');
    await stand.startAgent();
    await stand.ready(placed);
  });

  it('adopts what runs after kill -9, and finds gone what does not', async () => {
    const [kept, lost] = [await stand.decide('quay/a'), await stand.decide('quay/b')];
    await Promise.all([stand.ready(kept), stand.ready(lost)]);
    await stand.endAgent('SIGKILL');
    const pid = await pidOf(lost);
    process.kill(pid, 'SIGKILL');
    await waitFor('the engine is gone', 5000, () => !isAlive(pid));
    await stand.startAgent();
    const adopted = await stand.until('ResidentAdopted', (e) => e.residentId === kept.residentId);
    const { measured } = await stand.ready(kept);
    expect(adopted.measured).toMatchObject({ contextTokens: measured.contextTokens, slots: measured.slots });
    expect(adopted.measured?.byDevice[0]).toMatchObject({
      deviceId: RAM,
      weightsBytes: measured.byDevice[0]?.weightsBytes,
      kvBytes: measured.byDevice[0]?.kvBytes,
    });
    expect(adopted.measured?.hostAnonymousBytes).toBeGreaterThan(0);
    await stand.until('ResidentFoundGone', (e) => e.residentId === lost.residentId);
    expect(isAlive(await pidOf(kept))).toBe(true);
    // It is watched like one of its own.
    process.kill(await pidOf(kept), 'SIGKILL');
    await stand.until('ResidentCrashed', (e) => e.residentId === kept.residentId);
  });

  it('finishes a load that an agent before it began, with one engine', async () => {
    const placed = await stand.decide('quay/big');
    await stand.until('LoadStarted', (e) => e.residentId === placed.residentId);
    await stand.endAgent('SIGKILL');
    await stand.startAgent();
    await stand.ready(placed);
    const started = (await stand.of('LoadStarted')).filter((e) => e.residentId === placed.residentId);
    expect(started).toHaveLength(1);
    const engines = processesOf(stand.home).filter(
      (p) => p.command.includes(placed.residentId) || p.pid === started[0]!.pid,
    );
    expect(engines.map((p) => p.pid)).toEqual([started[0]!.pid]);
  });

  it('stops an engine that no log entry explains', async () => {
    const placed = await stand.decide('quay/b');
    await stand.ready(placed);
    const pid = await pidOf(placed);
    await stand.endAgent('SIGKILL');
    // Another log: to it, whatever runs is unexplained.
    const other = await startEmbeddedNode();
    const { agent: stranger } = await stand.forkAgent({ env: { EVENTSTORE_URL: other.url } });
    await waitFor('the engine is stopped', 15_000, () => !isAlive(pid));
    const ended = once(stranger, 'exit');
    stranger.kill('SIGTERM');
    await ended;
    await other.stop();
    await stand.startAgent();
    await stand.until('ResidentFoundGone', (e) => e.residentId === placed.residentId);
  });

  it('drains and stops everything at its end, and says so', async () => {
    const placed = await stand.decide('quay/a');
    await stand.ready(placed);
    const pid = await pidOf(placed);
    await stand.endAgent();
    expect(isAlive(pid)).toBe(false);
    const evicted = (await stand.of('ResidentEvicted')).find((e) => e.residentId === placed.residentId);
    expect(evicted?.reason).toBe('shutdown');
    await stand.startAgent();
  });
});
