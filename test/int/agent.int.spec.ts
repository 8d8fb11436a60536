import { fork, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEventType, DataOf, Recorded, WorkerEvent } from '#domain/events/index.js';
import { decisionId, modelKey, RAM, residentId, type WorkerId } from '#domain/ids.js';
import type { Contract } from '#domain/placement-terms.js';
import { aContract, aDecision } from '#domain/testing/given.js';
import { GIB, MIB } from '#domain/units.js';
import { checkInvariants } from '#events/check/invariants.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { newId } from '#runtime/ids.js';
import { isAlive, packageRoot } from '#runtime/process-info.js';
import { cleanEnv, logsOf, processesOf, removeFolder, tempFolder, writeModels } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

/** The agent alone against a real log with a real engine; the test takes the decisions that an api would. */
describe('the worker agent', () => {
  const home = tempFolder();
  let node: Awaited<ReturnType<typeof startEmbeddedNode>>;
  let log: EventLog;
  let agent: ChildProcess;
  let worker: WorkerId;
  let build = '';

  beforeAll(async () => {
    mkdirSync(join(home, 'models'), { recursive: true });
    await writeModels(home, {
      'quay/a': 'chat-a',
      'quay/b': 'chat-b',
      'quay/big': { preset: 'big', sizeMb: 150 },
    });
    node = await startEmbeddedNode();
    log = openEventLog({ url: node.url, by: 'test', now: () => Date.now() });
    await startAgent();
    const registered = (await of('WorkerRegistered'))[0]!;
    build = registered.engines.find((e) => e.kind === 'built-in')!.build;
  });
  afterEach(async () => {
    expect(agent.exitCode).toBeNull();
    expect(await checkInvariants(log, { atRest: false })).toEqual([]);
  });
  afterAll(async () => {
    await stopAgent();
    const left = await checkInvariants(log, { atRest: true });
    await log.close();
    await node.stop();
    removeFolder(home);
    expect(left).toEqual([]);
  });

  async function startAgent(): Promise<void> {
    agent = fork(join(packageRoot(), 'dist/apps/worker-agent/src/main.js'), [], {
      env: {
        ...cleanEnv(home),
        BERTH_HOME: home,
        BERTH_MODELS: join(home, 'models'),
        EVENTSTORE_URL: node.url,
      },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    });
    const [message] = (await once(agent, 'message')) as [
      { berth: string; message?: string; details: { workerId: WorkerId } },
    ];
    if (message.berth !== 'ready')
      throw new Error(`the agent did not start: ${String(message.message)} ${logsOf(home)}`);
    worker = message.details.workerId;
  }
  async function stopAgent(): Promise<void> {
    const gone = once(agent, 'exit');
    agent.kill('SIGTERM');
    await gone;
  }

  const all = async (): Promise<readonly Recorded<WorkerEvent>[]> => {
    const events: Recorded<WorkerEvent>[] = [];
    for await (const e of log.readForwards<WorkerEvent>(streams.worker(worker))) events.push(e);
    return events;
  };
  const of = async <T extends BerthEventType>(type: T): Promise<DataOf<T>[]> =>
    (await all()).flatMap((e) => (e.event.type === (type as string) ? [e.event.data as DataOf<T>] : []));
  const until = <T extends BerthEventType>(
    type: T,
    holds: (data: DataOf<T>) => boolean,
    deadlineMs = 30_000,
  ) => waitFor(type, deadlineMs, async () => (await of(type)).find(holds));

  const contract = (): Contract => aContract({ engine: { kind: 'built-in', build }, contextTokens: 2048 });

  interface Placed {
    readonly residentId: ReturnType<typeof residentId>;
    readonly decisionId: ReturnType<typeof decisionId>;
  }
  async function decide(
    model: string,
    over: { victims?: Placed[]; needBytes?: number; validForMs?: number; artifact?: string } = {},
  ): Promise<Placed> {
    const placed: Placed = { residentId: residentId(newId()), decisionId: decisionId(newId()) };
    const outcome = await log.append<WorkerEvent>(
      streams.worker(worker),
      [
        {
          id: newId(),
          cause: { correlationId: placed.decisionId, causationId: placed.decisionId },
          event: {
            type: 'PlacementDecided',
            data: aDecision(model, {
              ...placed,
              artifact: over.artifact ?? 'F16',
              contract: contract(),
              need: [{ deviceId: RAM, term: 'weights', bytes: over.needBytes ?? MIB, basis: 'header' }],
              room: [{ deviceId: RAM, bytes: 100 * GIB }],
              victims: (over.victims ?? []).map((v) => ({
                residentId: v.residentId,
                modelKey: modelKey('victim'),
                lossSeconds: 0,
                frees: [],
              })),
              now: new Date().toISOString(),
              validUntil: new Date(Date.now() + (over.validForMs ?? 60_000)).toISOString(),
            }),
          },
        },
      ],
      'any',
    );
    expect(outcome.ok).toBe(true);
    return placed;
  }
  const ready = (placed: Placed) => until('ResidentReady', (e) => e.residentId === placed.residentId);
  const pidOf = async (placed: Placed) =>
    (await of('LoadStarted')).find((e) => e.residentId === placed.residentId)!.pid;
  const readyResidents = async () => {
    const ended = new Set((await of('ResidentEvicted')).map((e) => e.residentId as string));
    (await of('ResidentCrashed')).forEach((e) => ended.add(e.residentId));
    (await of('ResidentFoundGone')).forEach((e) => ended.add(e.residentId));
    return (await of('ResidentReady'))
      .filter((e) => !ended.has(e.residentId))
      .map((e) => ({ residentId: e.residentId, decisionId: decisionId('') }));
  };

  it('says what the machine is, and only once', async () => {
    const [capacity] = await of('CapacityMeasured');
    expect(capacity!.ramBytes).toBeGreaterThan(GIB);
    expect(capacity!.physicalCores).toBeGreaterThan(0);
    await stopAgent();
    await startAgent();
    expect(await of('WorkerRegistered')).toHaveLength(1);
    expect(await of('CapacityMeasured')).toHaveLength(1);
  });

  it('loads what the log decides, measures it, and keeps the figures in the history of the pair', async () => {
    const placed = await decide('quay/a');
    const { measured } = await ready(placed);
    expect(measured.contextTokens).toBe(2048);
    expect(measured.byDevice[0]!.weightsBytes).toBeGreaterThan(100_000);
    expect(measured.byDevice[0]!.kvBytes).toBeGreaterThan(0);
    const history = await waitFor('the measurement', 5000, async () => {
      const [last] = await log.readBackwards(streams.history(worker, modelKey('quay/a')), 1);
      return last;
    });
    expect(history.event.type).toBe('LoadMeasured');
    expect(isAlive(await pidOf(placed))).toBe(true);
  });

  it('stops a victim before it loads the newcomer', async () => {
    const victims = await readyResidents();
    const placed = await decide('quay/b', { victims });
    await ready(placed);
    const order = (await all())
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
    const before = processesOf(home).length;
    // Within the limit by the log's figures, and more than the machine has left beside everything else that runs on it.
    const { ramBytes } = (await of('CapacityMeasured'))[0]!;
    const placed = await decide('quay/a', { needBytes: ramBytes - 384 * MIB });
    const closed = await until('DecisionClosed', (e) => e.decisionId === placed.decisionId);
    expect(closed.why).toBe('agent-refused');
    expect(closed.roomRead?.[0]?.bytes).toBeGreaterThan(0);
    expect(closed.reason).toMatch(/GiB/);
    expect(processesOf(home).length).toBe(before);
  });

  it('closes a decision that is out of date', async () => {
    const placed = await decide('quay/a', { validForMs: -1 });
    expect((await until('DecisionClosed', (e) => e.decisionId === placed.decisionId)).why).toBe('expired');
  });

  it('says why a load failed when its files are not there', async () => {
    const placed = await decide('quay/none');
    const failed = await until('LoadFailed', (e) => e.residentId === placed.residentId);
    expect(failed.class).toBe('bad-artifact');
    expect(failed.message).toContain('quay/none');
  });

  it('records an engine that was killed', async () => {
    const placed = await decide('quay/a');
    await ready(placed);
    process.kill(await pidOf(placed), 'SIGKILL');
    const crashed = await until('ResidentCrashed', (e) => e.residentId === placed.residentId);
    expect(crashed).toMatchObject({ signal: 'SIGKILL', during: 'unknown' });
  });

  it('tells one end of a victim whose engine dies while it is evicted', async () => {
    const victim = await decide('quay/a');
    await ready(victim);
    const pid = await pidOf(victim);
    const placed = await decide('quay/b', { victims: [victim] });
    await until('EvictionStarted', (e) => e.residentId === victim.residentId);
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    await ready(placed);
    const ends = (await all()).filter(
      ({ event }) =>
        (event.type === 'ResidentEvicted' || event.type === 'ResidentCrashed') &&
        event.data.residentId === victim.residentId,
    );
    expect(ends).toHaveLength(1);
  });

  it('acts on a decision that was taken while no agent was there', async () => {
    await stopAgent();
    const placed = await decide('quay/a');
    await startAgent();
    await ready(placed);
  });

  it('adopts what runs after kill -9, and finds gone what does not', async () => {
    const [kept, lost] = [await decide('quay/a'), await decide('quay/b')];
    await Promise.all([ready(kept), ready(lost)]);
    const gone = once(agent, 'exit');
    agent.kill('SIGKILL');
    await gone;
    const pid = await pidOf(lost);
    process.kill(pid, 'SIGKILL');
    await waitFor('the engine is gone', 5000, () => !isAlive(pid));
    await startAgent();
    await until('ResidentAdopted', (e) => e.residentId === kept.residentId);
    await until('ResidentFoundGone', (e) => e.residentId === lost.residentId);
    expect(isAlive(await pidOf(kept))).toBe(true);
    // It is watched like one of its own.
    process.kill(await pidOf(kept), 'SIGKILL');
    await until('ResidentCrashed', (e) => e.residentId === kept.residentId);
  });

  it('finishes a load that an agent before it began, with one engine', async () => {
    const placed = await decide('quay/big');
    await until('LoadStarted', (e) => e.residentId === placed.residentId);
    const gone = once(agent, 'exit');
    agent.kill('SIGKILL');
    await gone;
    await startAgent();
    await ready(placed);
    const started = (await of('LoadStarted')).filter((e) => e.residentId === placed.residentId);
    expect(started).toHaveLength(1);
    const engines = processesOf(home).filter(
      (p) => p.command.includes(placed.residentId) || p.pid === started[0]!.pid,
    );
    expect(engines.map((p) => p.pid)).toEqual([started[0]!.pid]);
  });

  it('stops an engine that no log entry explains', async () => {
    const placed = await decide('quay/b');
    await ready(placed);
    const pid = await pidOf(placed);
    const gone = once(agent, 'exit');
    agent.kill('SIGKILL');
    await gone;
    // Another log: to it, whatever runs is unexplained.
    const other = await startEmbeddedNode();
    const stranger = fork(join(packageRoot(), 'dist/apps/worker-agent/src/main.js'), [], {
      env: {
        ...cleanEnv(home),
        BERTH_HOME: home,
        BERTH_MODELS: join(home, 'models'),
        EVENTSTORE_URL: other.url,
      },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    });
    await once(stranger, 'message');
    await waitFor('the engine is stopped', 15_000, () => !isAlive(pid));
    const ended = once(stranger, 'exit');
    stranger.kill('SIGTERM');
    await ended;
    await other.stop();
    await startAgent();
    await until('ResidentFoundGone', (e) => e.residentId === placed.residentId);
  });

  it('drains and stops everything at its end, and says so', async () => {
    const placed = await decide('quay/a');
    await ready(placed);
    const pid = await pidOf(placed);
    await stopAgent();
    expect(isAlive(pid)).toBe(false);
    const evicted = (await of('ResidentEvicted')).find((e) => e.residentId === placed.residentId);
    expect(evicted?.reason).toBe('shutdown');
    await startAgent();
  });
});
