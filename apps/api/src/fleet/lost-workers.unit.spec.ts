import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import type { WorkerEvent } from '#domain/events/index.js';
import { workerId } from '#domain/ids.js';
import { streams } from '#events/streams.js';
import { MemoryLog } from '#events/testing/memory-log.js';
import { SAMPLES } from '#events/testing/samples.js';
import { until } from '#events/testing/until.js';
import { AgentSessions } from '../agents/sessions.js';
import { Fleet } from './fleet.js';
import { LOST_AFTER_MS, LostWorkers } from './lost-workers.js';

const ID = workerId('01979d3e-0000-7000-8000-000000000001');
const STREAM = streams.worker(ID);
const BEGAN = Date.UTC(2026, 0, 1);
const logger = pino({ level: 'silent' });

describe('workers whose agent is not heard of', () => {
  const ended: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ended.splice(0).reverse()) await end();
  });

  const clock = { ms: BEGAN };
  /** A log with one worker that its agent registered, when everything begins. */
  const aLog = async () => {
    clock.ms = BEGAN;
    const log = new MemoryLog({ by: 'agent:w', now: () => clock.ms });
    await append(log, { type: 'WorkerRegistered', data: SAMPLES.WorkerRegistered });
    return log;
  };
  const append = (log: MemoryLog, event: WorkerEvent) => {
    const id = `0197a000-0000-7000-8000-${String(log.all.length).padStart(12, '0')}`;
    return log.append(STREAM, [{ id, event, cause: { correlationId: id, causationId: id } }], 'any');
  };
  const anApi = async (log: MemoryLog) => {
    const fleet = new Fleet(log);
    const sessions = new AgentSessions({ apiId: 'api', log: logger, now: () => clock.ms });
    const lost = new LostWorkers({ fleet, sessions, log, logger, now: () => clock.ms });
    await fleet.start();
    lost.start();
    ended.push(
      () => fleet.stop(),
      () => sessions.close(),
      () => lost.stop(),
    );
    const connect = () => {
      const line = sessions.open({ send: () => undefined, end: () => undefined });
      line.receive({ hello: { workerId: ID, name: 'desk', bootId: 'boot-2', agentVersion: '1' } });
      return line;
    };
    const isLost = (wanted: boolean) => until(() => fleet.worker(ID)?.lost === wanted);
    return { fleet, lost, connect, isLost };
  };
  const said = (log: MemoryLog) =>
    log
      .stream(STREAM)
      .map(({ event }) => event)
      .filter(({ type }) => type === 'WorkerLost' || type === 'WorkerReturned');

  it('are said to be lost after a while, with when they were last heard, and once', async () => {
    const log = await aLog();
    const api = await anApi(log);
    const line = api.connect();
    clock.ms += 10_000;
    line.receive({ heartbeat: { at: '' } });
    clock.ms += 2000;
    line.closed();
    clock.ms += LOST_AFTER_MS - 1;
    api.lost.check();
    expect(said(log)).toEqual([]);
    clock.ms += 1;
    api.lost.check();
    await api.isLost(true);
    api.lost.check();
    expect(said(log)).toEqual([
      { type: 'WorkerLost', data: { lastSeenAt: new Date(BEGAN + 10_000).toISOString() } },
    ]);
  });

  it('are said to be back as soon as their agent dials, and may be lost again', async () => {
    const log = await aLog();
    const api = await anApi(log);
    clock.ms += LOST_AFTER_MS;
    api.lost.check();
    await api.isLost(true);
    // What the agent wrote last is when it was last seen by an api that never heard it.
    expect(said(log)[0]?.data).toEqual({ lastSeenAt: new Date(BEGAN).toISOString() });
    const line = api.connect();
    await api.isLost(false);
    expect(said(log)[1]).toEqual({ type: 'WorkerReturned', data: { bootId: 'boot-2' } });
    line.closed();
    clock.ms += LOST_AFTER_MS;
    api.lost.check();
    await api.isLost(true);
    expect(said(log).map(({ type }) => type)).toEqual(['WorkerLost', 'WorkerReturned', 'WorkerLost']);
  });

  it('are not said to be lost while they write', async () => {
    const log = await aLog();
    const api = await anApi(log);
    clock.ms += LOST_AFTER_MS;
    await append(log, { type: 'ForeignUseChanged', data: SAMPLES.ForeignUseChanged });
    await until(() => (api.fleet.worker(ID)?.foreign.size ?? 0) > 0);
    api.lost.check();
    expect(said(log)).toEqual([]);
    clock.ms += LOST_AFTER_MS;
    api.lost.check();
    await api.isLost(true);
    expect(said(log)).toEqual([
      { type: 'WorkerLost', data: { lastSeenAt: new Date(BEGAN + LOST_AFTER_MS).toISOString() } },
    ]);
  });

  it('are said to be lost by one of several apis', async () => {
    const log = await aLog();
    const apis = [await anApi(log), await anApi(log), await anApi(log)];
    clock.ms += LOST_AFTER_MS;
    for (const api of apis) api.lost.check();
    for (const api of apis) await api.isLost(true);
    expect(said(log)).toHaveLength(1);
  });

  it('that one api misses and another hears are there', async () => {
    const log = await aLog();
    const [one, other] = [await anApi(log), await anApi(log)];
    other.connect();
    clock.ms += LOST_AFTER_MS;
    one.lost.check();
    await until(() => said(log).length === 2);
    await one.isLost(false);
    one.lost.check();
    await other.isLost(false);
    expect(said(log).map(({ type }) => type)).toEqual(['WorkerLost', 'WorkerReturned']);
  });
});
