import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { checkInvariants } from '#events/check/invariants.js';
import { isAlive } from '#runtime/process-info.js';
import { readRoom } from '../../../apps/worker-agent/src/agent/room.js';
import { anonymousBytes } from '../../../apps/worker-agent/src/hardware/memory.js';
import { listProcesses } from '../../../apps/worker-agent/src/hardware/processes.js';
import { makeModel } from '../../../apps/worker-agent/src/make-model/index.js';
import { RAM } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { AgentStand, type Placed } from '../../support/agent-stand.js';
import { roomDifferences } from '../../support/measured-room.js';
import { killedAt } from '../../support/killed-at.js';
import { ScriptedApi } from '../../support/scripted-api.js';
import { removeFolder, tempFolder } from '../../support/stack.js';
import { writeUnrulyServer } from '../../support/unruly-server.js';
import { waitFor } from '../../support/wait.js';

/** A minute where everything is looked at; less is enough for whoever waits: the agent tries again after 5 s at most. */
const AWAY_SECONDS = process.env['CI'] === 'true' ? 60 : 6;

/** Ends that are told of a resident, whichever they are. */
const ENDS = ['ResidentEvicted', 'ResidentCrashed', 'ResidentFoundGone', 'LoadFailed'];

/** Also when it has left its group: a parent stays in the list of processes until it is gone. */
const isForkedBy = (parent: number, pid: number): boolean =>
  listProcesses().some((process) => process.pid === pid && process.parent === parent);

/** What all that runs here holds, but for one process. */
const heldByOthers = (but: number): number =>
  listProcesses().reduce((sum, { pid }) => sum + (pid === but ? 0 : (anonymousBytes(pid) ?? 0)), 0);

describe('an agent that meets with faults', { timeout: 180_000 }, () => {
  const programs = tempFolder();
  const unruly = writeUnrulyServer(join(programs, 'llama-server'));
  const stand = new AgentStand({ LLAMA_SERVER_BIN: unruly });
  beforeAll(async () => {
    await stand.start({
      'quay/a': 'chat-a',
      'quay/b': 'chat-b',
      'quay/c': 'chat-a',
      'quay/d': 'chat-a',
      'quay/e': 'chat-a',
      'quay/big': { preset: 'big', sizeMb: 120 },
    });
  }, 180_000);
  afterEach(async () => {
    expect(await checkInvariants(stand.log, { atRest: false })).toEqual([]);
    // No orphan, and nothing twice: every engine that runs is one that the log tells of.
    const started = await stand.of('LoadStarted');
    const pids = new Set([...started, ...(await stand.of('LoadRestarted'))].map(({ pid }) => pid));
    await waitFor('no engine runs that the log does not know', 10_000, () =>
      stand.engines().every((pid) => pids.has(pid)),
    );
    const residents = started.map(({ residentId }) => residentId);
    expect(new Set(residents).size).toBe(residents.length);
    await roomAsMeasured();
  }, 60_000);
  afterAll(async () => {
    await stand.endAgent();
    const violations = await checkInvariants(stand.log, { atRest: true });
    expect(await stand.stop()).toEqual([]);
    removeFolder(programs);
    expect(violations).toEqual([]);
  }, 180_000);

  /** The room that the next decision would be given is what the machine has left. */
  const roomAsMeasured = async (): Promise<void> => {
    let wrong: readonly string[] = [];
    // Readings come once a second, and loads that a fault left open are finished first.
    await waitFor('the room is as measured', 30_000, async () => {
      wrong = roomDifferences(await stand.state(), stand.home);
      return wrong.length === 0;
    }).catch(() => expect(wrong).toEqual([]));
  };
  const loaded = async (
    model: string,
    over: Parameters<AgentStand['decide']>[1] = {},
  ): Promise<Placed & { pid: number }> => {
    const placed = await stand.decide(model, over);
    await stand.ready(placed);
    return { ...placed, pid: (await stand.started(placed)).pid };
  };
  const end = async (placed: Placed) =>
    waitFor('an end', 120_000, async () => (await stand.lifeOf(placed)).find((type) => ENDS.includes(type)));
  /** The revision since which a resident leaves: that of the decision which takes its room. */
  const leavesSince = async (newcomer: Placed): Promise<number> =>
    (await stand.all()).find(
      ({ event }) => event.type === 'PlacementDecided' && event.data.residentId === newcomer.residentId,
    )?.revision ?? -1;

  it('stops no engine before every api has let go of it, and then does, also over a kill of the agent', async () => {
    const [one, other] = [await new ScriptedApi(stand.log).start(), await new ScriptedApi(stand.log).start()];
    try {
      const victim = await loaded('quay/a');
      const newcomer = await stand.decide('quay/b', { victims: [victim] });
      const since = await leavesSince(newcomer);
      await stand.until('EvictionStarted', (e) => e.residentId === victim.residentId);
      await one.letGo(victim.residentId, since);
      // The agent has heard the one: it still waits for the other.
      expect(isAlive(victim.pid)).toBe(true);
      expect(await stand.lifeOf(newcomer)).toEqual(['PlacementDecided']);
      // What was said of an earlier leaving counts for none of this.
      await other.letGo(victim.residentId, since - 1);
      expect(isAlive(victim.pid)).toBe(true);

      for (const api of [one, other]) api.forgetAgent();
      await stand.endAgent('SIGKILL');
      await stand.startAgent();
      for (const api of [one, other]) await api.connected();
      expect(isAlive(victim.pid)).toBe(true);
      await one.letGo(victim.residentId, since);
      expect(isAlive(victim.pid)).toBe(true);
      await other.letGo(victim.residentId, since);
      await stand.ready(newcomer);
      expect(isAlive(victim.pid)).toBe(false);
      const life = await stand.lifeOf(victim);
      expect(life.filter((type) => ENDS.includes(type))).toEqual(['ResidentEvicted']);
      expect(
        (await stand.of('LoadStarted')).filter((e) => e.residentId === newcomer.residentId),
      ).toHaveLength(1);
    } finally {
      await one.stop();
      await other.stop();
    }
  });

  it('stops at its own end also what an api never lets go of, as one eviction', async () => {
    const busy = await loaded('quay/a');
    const api = await new ScriptedApi(stand.log).start();
    try {
      await stand.endAgent();
      expect(isAlive(busy.pid)).toBe(false);
      const life = await stand.lifeOf(busy);
      expect(life.slice(-2)).toEqual(['EvictionStarted', 'ResidentEvicted']);
    } finally {
      await api.stop();
      await stand.startAgent();
    }
  });

  it('tells the end of an engine once that is killed while an api still holds its eviction up', async () => {
    const api = await new ScriptedApi(stand.log).start();
    try {
      const victim = await loaded('quay/a');
      const newcomer = await stand.decide('quay/b', { victims: [victim] });
      await stand.until('EvictionStarted', (e) => e.residentId === victim.residentId);
      process.kill(victim.pid, 'SIGKILL');
      expect(await end(victim)).toBe('ResidentCrashed');
      await api.letGo(victim.residentId, await leavesSince(newcomer));
      await stand.ready(newcomer);
      expect((await stand.lifeOf(victim)).filter((type) => ENDS.includes(type))).toEqual(['ResidentCrashed']);
    } finally {
      await api.stop();
    }
  });

  it('ends an engine that ignores SIGTERM with what it forked, and begins on its room only then', async () => {
    const victim = await loaded('quay/a', { engine: 'llama-server' });
    const holder = await waitFor('what it forked', 10_000, () =>
      stand.engines().find((pid) => pid !== victim.pid && isForkedBy(victim.pid, pid)),
    );
    const newcomer = await stand.decide('quay/b', { victims: [victim] });
    await stand.started(newcomer);
    expect([isAlive(victim.pid), isAlive(holder)]).toEqual([false, false]);
    expect((await stand.lifeOf(victim)).slice(-2)).toEqual(['EvictionStarted', 'ResidentEvicted']);
    await stand.ready(newcomer);
  });

  it('fails a load whose program cannot be executed or is missing, and loads again when it is back', async () => {
    const failed = async (): Promise<unknown> => {
      const placed = await stand.decide('quay/a', { engine: 'llama-server' });
      return stand.until('LoadFailed', (e) => e.residentId === placed.residentId);
    };
    chmodSync(unruly, 0o600);
    expect(await failed()).toMatchObject({ class: 'incompatible-engine' });
    renameSync(unruly, `${unruly}.away`);
    expect(await failed()).toMatchObject({
      class: 'incompatible-engine',
      message: expect.stringContaining(unruly) as string,
    });
    renameSync(`${unruly}.away`, unruly);
    chmodSync(unruly, 0o755);
    process.kill((await loaded('quay/a', { engine: 'llama-server' })).pid, 'SIGKILL');
  });

  it('decides anew for a program that took the place of another, and keeps serving from the old one', async () => {
    const builds = async () =>
      ((await stand.of('WorkerRegistered')).at(-1)?.engines ?? []).map((e) => e.build);
    const old = await loaded('quay/b', { engine: 'llama-server' });
    const { engine } = await stand.started(old);
    writeUnrulyServer(unruly, '5000 (99aabbc)');
    // Taken for the build that was there: what is believed of it is not true of the other.
    const late = await stand.decide('quay/a', { contract: { engine } });
    const closed = await stand.until('DecisionClosed', (e) => e.decisionId === late.decisionId);
    expect(closed).toMatchObject({
      why: 'agent-refused',
      reason: expect.stringContaining('99aabbc') as string,
    });
    expect(await builds()).toContainEqual(expect.stringMatching(/^99aabbc-/));
    const placed = await loaded('quay/a', { engine: 'llama-server' });
    expect((await stand.started(placed)).engine.version).toBe('5000');
    expect(isAlive(old.pid)).toBe(true);

    // With nothing to launch, it is noticed all the same.
    writeUnrulyServer(unruly);
    await waitFor('the first is told again', 30_000, async () => (await builds()).includes(engine.build));
    for (const { pid } of [old, placed]) process.kill(pid, 'SIGKILL');
    for (const gone of [old, placed]) expect(await end(gone)).toBe('ResidentCrashed');
  });

  it('fails a load that the system gives no memory, and loads the same model where it is enough', async () => {
    const large = { slots: 8, microBatch: 128, flashAttention: true };
    const placed = await stand.decide('quay/a', { contextTokens: 2 ** 20, contract: large });
    const { pid } = await stand.started(placed);
    // 2 GiB of cache, under a limit of 1 GiB for the data of the process.
    execFileSync('prlimit', [`--pid=${pid}`, `--data=${2 ** 30}`]);
    const failed = await stand.until('LoadFailed', (e) => e.residentId === placed.residentId);
    expect(failed, failed.message).toMatchObject({ class: 'out-of-memory' });
    expect(isAlive(pid)).toBe(false);
    await loaded('quay/a');
  });

  it('tells an engine that is killed while it loads as a failed load', async () => {
    const placed = await stand.decide('quay/big', { contextTokens: 4096 });
    process.kill((await stand.started(placed)).pid, 'SIGKILL');
    expect(await end(placed)).toBe('LoadFailed');
    const failed = await stand.until('LoadFailed', (e) => e.residentId === placed.residentId);
    expect(failed).toMatchObject({ class: 'exited', message: expect.stringContaining('SIGKILL') as string });
  });

  /** Decides, and waits until the agent has ended itself at the moment that it was started for. */
  const killedWhile = async (model: string, moment: Parameters<typeof killedAt>[1]) => {
    await stand.endAgent();
    await stand.startAgent({ execArgv: killedAt(stand.home, moment) });
    const gone = stand.agentGone();
    const placed = await stand.decide(model);
    await gone;
    const left = stand.engines();
    expect(left).toHaveLength(1);
    expect(await stand.of('LoadFailed').then((all) => all.map((e) => e.residentId))).not.toContain(
      placed.residentId,
    );
    await stand.startAgent();
    await stand.ready(placed);
    return { placed, left: left[0]!, started: await stand.started(placed) };
  };

  it('ends the engine that an agent spawned and was killed before it could keep it, and loads once more', async () => {
    const { placed, left, started } = await killedWhile('quay/a', { when: 'spawned' });
    expect(await stand.lifeOf(placed)).toEqual(['PlacementDecided', 'LoadStarted', 'ResidentReady']);
    expect(isAlive(left)).toBe(false);
    expect(stand.engines()).toEqual([started.pid]);
  });

  it('tells the load of an engine whose agent was killed between spawning and saying so, and finishes it', async () => {
    const { placed, left, started } = await killedWhile('quay/a', { when: 'kept' });
    expect(await stand.lifeOf(placed)).toEqual([
      'PlacementDecided',
      'LoadStarted',
      'ResidentAdopted',
      'ResidentReady',
    ]);
    expect([started.pid, stand.engines()]).toEqual([left, [left]]);
  });

  it('tells the second process of a load whose port was taken, also when the agent is killed right after', async () => {
    const { placed, left, started } = await killedWhile('quay/a', { when: 'kept', time: 2, takesPorts: 1 });
    expect(await stand.lifeOf(placed)).toEqual([
      'PlacementDecided',
      'LoadStarted',
      'LoadRestarted',
      'ResidentAdopted',
      'ResidentReady',
    ]);
    const again = await stand.until('LoadRestarted', (e) => e.residentId === placed.residentId);
    expect([again.pid, stand.engines()]).toEqual([left, [left]]);
    expect(again.port).not.toBe(started.port);
    expect(isAlive(started.pid, started.pidStartTicks)).toBe(false);
  });

  it('finds an engine whose state file is lost by its mark, and ends it before another is started', async () => {
    const placed = await loaded('quay/a');
    await stand.endAgent('SIGKILL');
    rmSync(join(stand.home, 'engines', `${placed.residentId}.json`));
    expect(stand.engines()).toContain(placed.pid);
    await stand.startAgent();
    expect(await end(placed)).toBe('ResidentFoundGone');
    expect(isAlive(placed.pid)).toBe(false);
  });

  it('serves a replaced file from no old resident', async () => {
    const placed = await loaded('quay/c');
    const file = stand.fileOf('quay/c');
    await makeModel({ preset: 'chat-b', file: `${file}.next` });
    renameSync(`${file}.next`, file);
    const evicted = await stand.until('ResidentEvicted', (e) => e.residentId === placed.residentId);
    expect(evicted.reason).toBe('artifact');
    expect(isAlive(placed.pid)).toBe(false);
    const again = await loaded('quay/c');
    expect(isAlive(again.pid)).toBe(true);
  });

  it('unloads a resident whose file is gone, and one whose file is cut short', async () => {
    const [gone, cut] = [await loaded('quay/d'), await loaded('quay/e')];
    copyFileSync(stand.fileOf('quay/d'), join(stand.home, 'kept.gguf'));
    rmSync(stand.fileOf('quay/d'));
    truncateSync(stand.fileOf('quay/e'), 4096);
    const evicted = await stand.until('ResidentEvicted', (e) => e.residentId === gone.residentId);
    expect(evicted.reason).toBe('artifact');
    // Its mapped pages may be gone before it is: then it crashes, and that is told.
    expect(['ResidentEvicted', 'ResidentCrashed']).toContain(await end(cut));
    for (const { pid } of [gone, cut]) expect(isAlive(pid)).toBe(false);
  });

  it('loses nothing while the log is away: a crash and a load meanwhile are told when it is back', async () => {
    const crashes = await loaded('quay/a');
    const loads = await stand.decide('quay/big');
    await stand.started(loads);
    await stand.node.kill9();
    process.kill(crashes.pid, 'SIGKILL');
    await waitFor('the engine is gone', 10_000, () => !isAlive(crashes.pid));
    // The agent's own retries pass while nothing answers.
    const awayUntil = performance.now() + AWAY_SECONDS * 1000;
    await waitFor('the log was away for long enough', 120_000, () => performance.now() > awayUntil);
    await stand.node.restart();
    await stand.ready(loads);
    expect(await end(crashes)).toBe('ResidentCrashed');
  }, 180_000);

  it('goes on when the clock is set back while it loads and while it drains', async () => {
    await stand.endAgent();
    const shim = join(stand.home, 'clock.mjs');
    writeFileSync(
      shim,
      `let offsetMs = 0; const real = Date.now;
       Date.now = () => real() + offsetMs;
       const RealDate = Date;
       globalThis.Date = new Proxy(RealDate, { construct: (D, a) => a.length ? new D(...a) : new D(Date.now()) });
       process.on('message', (m) => { if (m && m.clockMs !== undefined) { offsetMs = m.clockMs; process.send({ clock: m.clockMs }); } });`,
    );
    await stand.startAgent({ execArgv: [`--import=file://${shim}`] });
    const set = (clockMs: number) =>
      new Promise<void>((resolve) => {
        stand.agent?.once('message', () => resolve());
        stand.agent?.send({ clockMs });
      });
    const placed = await stand.decide('quay/big');
    await stand.started(placed);
    await set(-3_600_000);
    await stand.ready(placed);
    const api = await new ScriptedApi(stand.log).start();
    try {
      const newcomer = await stand.decide('quay/a', { victims: [placed] });
      await stand.until('EvictionStarted', (e) => e.residentId === placed.residentId);
      await set(-7_200_000);
      await api.letGo(placed.residentId, await leavesSince(newcomer));
      await stand.ready(newcomer);
      const evicted = await stand.until('ResidentEvicted', (e) => e.residentId === placed.residentId);
      expect(evicted.seconds).toBeGreaterThanOrEqual(0);
      expect(evicted.seconds).toBeLessThan(3000);
    } finally {
      await api.stop();
    }
    await stand.endAgent();
    await stand.startAgent();
  });

  it.skipIf(process.getuid?.() !== 0)(
    'fails a load with words when the disk is full, and loads when it is not',
    async () => {
      const folder = join(stand.home, 'engines');
      await stand.endAgent();
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0700', 'tmpfs', folder]);
      try {
        await stand.startAgent();
        const filler = join(folder, 'filler');
        expect(() => writeFileSync(filler, Buffer.alloc(1024 * 1024))).toThrow(/ENOSPC/);
        const placed = await stand.decide('quay/a');
        const failed = await stand.until('LoadFailed', (e) => e.residentId === placed.residentId);
        expect(failed.message).toContain('ENOSPC');
        expect(failed.class).toBe('exited');
        expect(stand.engines()).toEqual([]);
        rmSync(filler);
        await loaded('quay/a');
        await stand.endAgent();
      } finally {
        execFileSync('umount', ['-l', folder]);
        await stand.startAgent();
      }
    },
  );

  it('gives the room of a killed engine back: what is free is as measured', async () => {
    const room = async () => (await readRoom([RAM]))[0]?.bytes ?? 0;
    // So much that to count it as another program's, or not at all, is seen.
    const large = { slots: 8, microBatch: 128, flashAttention: true };
    const placed = await stand.decide('quay/a', { contextTokens: 2 ** 18, contract: large });
    const { measured } = await stand.ready(placed);
    const heldBytes = measured.hostAnonymousBytes;
    expect(heldBytes).toBeGreaterThan(512 * MIB);
    await roomAsMeasured();
    const { pid } = await stand.started(placed);
    const during = { room: await room(), others: heldByOthers(pid) };
    process.kill(pid, 'SIGKILL');
    expect(await end(placed)).toBe('ResidentCrashed');
    // Others use this machine too: most of what it held must be seen again within some looks, but for what they took since.
    await waitFor('its memory is free again', 20_000, async () => {
      const taken = heldByOthers(pid) - during.others;
      return (await room()) + Math.max(0, taken) > during.room + heldBytes / 2;
    });
  }, 120_000);
});
