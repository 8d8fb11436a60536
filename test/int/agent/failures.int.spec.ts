import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BerthEvent, PullEvent } from '#domain/events/index.js';
import { modelKey, residentId, workerId } from '#domain/ids.js';
import type { DiskLimit } from '#domain/worker/disk-limit.js';
import type { Resident } from '#domain/worker/state.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { newId } from '#runtime/ids.js';
import { RunningEngines } from '../../../apps/worker-agent/src/agent/engines.js';
import { Evictor } from '../../../apps/worker-agent/src/agent/evict.js';
import { FactWriter } from '../../../apps/worker-agent/src/agent/facts.js';
import type { AgentLine } from '../../../apps/worker-agent/src/line/line.js';
import type { RunningEngine } from '../../../apps/worker-agent/src/ports.js';
import { PullTasks } from '../../../apps/worker-agent/src/pull/pull-tasks.js';
import { removeFolder, tempFolder } from '../../support/stack.js';
import { waitFor } from '../../support/wait.js';

const logger = pino({ level: 'silent' });
const ID = workerId(newId());
const content = Buffer.from('not what its digest says');

/** A hub with one file in one repository, whose bytes are not those of its digest. */
const hub = createServer((request, response) => {
  if (request.url?.startsWith('/api/') !== true) {
    response.writeHead(200, { 'content-length': content.length }).end(content);
    return;
  }
  const lfs = { oid: '0'.repeat(64), size: content.length, pointerSize: 134 };
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify([{ type: 'file', path: 'ship-Q4_K_M.gguf', size: content.length, oid: 'a', lfs }]),
  );
});

describe('what an agent tells the log of what it could not do', () => {
  const folder = tempFolder();
  let node: EmbeddedNode;
  let log: EventLog;
  let facts: FactWriter;

  beforeAll(async () => {
    node = await startEmbeddedNode();
    log = openEventLog({ url: node.url, by: `agent:${ID}`, now: Date.now });
    facts = new FactWriter(log, ID, logger);
    hub.listen(0, '127.0.0.1');
    await once(hub, 'listening');
  });
  afterAll(async () => {
    hub.close();
    await log.close();
    await node.stop();
    removeFolder(folder);
  });

  const told = async (stream: string): Promise<readonly BerthEvent[]> => {
    const events: BerthEvent[] = [];
    for await (const { event } of log.readForwards(stream)) events.push(event);
    return events;
  };

  /** Every api has let go of it; the engine is as given. */
  const evict = async (engine: Partial<RunningEngine>) => {
    const resident = { residentId: residentId(newId()), modelKey: modelKey('quay/a') } as Resident;
    const engines = new RunningEngines([]);
    const exited = new Promise<never>(() => undefined);
    engines.add(
      { residentId: resident.residentId, pid: 0, exited, ...engine } as RunningEngine,
      () => undefined,
    );
    const line = {
      broadcast: () => undefined,
      onChange: () => () => undefined,
      isDrained: () => true,
      waitingFor: () => [],
    };
    const freed = { around: (_: Resident, __: number, stop: () => Promise<void>) => stop() };
    const evictor = new Evictor(engines, line as unknown as AgentLine, facts, logger, freed as never);
    const why = { correlationId: newId(), causationId: newId() };
    const gone = await evictor.evict(resident, { reason: 'operator', why, deadlineMs: 60 });
    const events = (await told(streams.worker(ID))).filter(
      ({ data }) => 'residentId' in data && data.residentId === resident.residentId,
    );
    return { gone, events };
  };

  it('is EvictionFailed for a resident that was still serving at the end of its drain', async () => {
    const { gone, events } = await evict({ requestsInFlight: () => Promise.resolve(1) });
    expect(gone).toBe(false);
    expect(events.map(({ type }) => type)).toEqual(['EvictionStarted', 'EvictionFailed']);
    expect(events[1]?.data).toMatchObject({
      reason: 'operator',
      why: 'busy',
      message: expect.stringMatching(/^quay\/a was still serving after \d+ s\.$/) as string,
    });
  });

  it('is EvictionFailed for an engine that would not stop', async () => {
    const { gone, events } = await evict({
      requestsInFlight: () => Promise.resolve(0),
      stop: () => Promise.reject(new Error('The process 7 is still there after SIGKILL.')),
    });
    expect(gone).toBe(false);
    expect(events.at(-1)).toMatchObject({
      type: 'EvictionFailed',
      data: { why: 'would-not-stop', message: 'The process 7 is still there after SIGKILL.' },
    });
  });

  it('is PullFailed for a transfer that began, and PullRefused for one that could not', async () => {
    const limits: DiskLimit[] = [];
    const pulls = new PullTasks({
      workerId: ID,
      log,
      facts,
      catalog: { rescan: () => Promise.resolve() },
      models: folder,
      diskLimit: () => limits[0],
      access: { endpoint: `http://127.0.0.1:${(hub.address() as AddressInfo).port}` },
      logger,
    });
    pulls.start();
    const ask = async (source: string): Promise<PullEvent> => {
      const pullId = newId();
      const event = { type: 'PullRequested' as const, data: { pullId, source, by: 'test' } };
      const cause = { correlationId: pullId, causationId: pullId };
      await log.append(streams.pull(ID), [{ id: newId(), event, cause }], 'any');
      return waitFor(`the end of ${source}`, 60_000, async () =>
        ((await told(streams.pull(ID))) as readonly PullEvent[]).find(
          ({ type, data }) => data.pullId === pullId && /^Pull(Finished|Failed|Refused)$/.test(type),
        ),
      );
    };
    expect(await ask('acme/ship-GGUF')).toMatchObject({
      type: 'PullFailed',
      data: { reason: expect.stringContaining('ship-Q4_K_M.gguf') as string },
    });
    expect(await ask('acme/ship-GGUF:Q9')).toMatchObject({
      type: 'PullRefused',
      data: { reason: expect.stringContaining('has no "Q9"') as string },
    });
    limits.push({ bytes: 1, tier: 'setting' });
    expect(await ask('acme/ship-GGUF:Q4_K_M')).toMatchObject({
      type: 'PullRefused',
      data: { reason: expect.stringContaining('the limit set by an admin is 1 B') as string },
    });
    await pulls.stop();
  }, 120_000);
});
