import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { BerthEvent, Recorded, WorkerEvent } from '#domain/events/index.js';
import { openEventLog } from './connect.js';
import { encodedAppendsOf } from './encoded-appends.js';
import type { EventLog, NewEvent } from './event-log.js';
import { type EmbeddedNode, startEmbeddedNode } from './testing/embedded-node.js';
import { SAMPLES } from './testing/samples.js';
import { until } from './testing/until.js';

/**
 * What is known to break under `@eventstore/db-client`, provoked through `openEventLog`. Its appends without a deadline
 * are in connect.int.spec.ts, with a node that is frozen.
 */
let nodes: EmbeddedNode[] = [];
let logs: EventLog[] = [];
let warnings: string[] = [];
const uncaught: string[] = [];
const catchIt = (error: unknown) => void uncaught.push(String(error));

beforeEach(() => {
  process.on('unhandledRejection', catchIt);
  process.on('uncaughtExceptionMonitor', catchIt);
});
afterEach(async () => {
  for (const node of nodes) node.thaw();
  await Promise.all(logs.map((log) => log.close()));
  await Promise.all(nodes.map((node) => node.stop()));
  process.off('unhandledRejection', catchIt);
  process.off('uncaughtExceptionMonitor', catchIt);
  [nodes, logs, warnings] = [[], [], []];
  expect(uncaught).toEqual([]);
});

async function openOne(): Promise<{ node: EmbeddedNode; log: EventLog }> {
  const node = await startEmbeddedNode();
  const warn = (message: string) => void warnings.push(message);
  const log = openEventLog({
    url: node.url,
    by: 'test',
    now: Date.now,
    log: { warn, info: warn, error: warn },
  });
  nodes.push(node);
  logs.push(log);
  return { node, log };
}
const pin = (by: string): NewEvent<WorkerEvent> => ({
  id: randomUUID(),
  event: { type: 'PinSet', data: { ...SAMPLES.PinSet, by } },
  cause: { correlationId: 'c', causationId: 'c' },
});
const by = ({ event }: Recorded<BerthEvent>): string =>
  event.type === 'PinSet' ? event.data.by : event.type;

it('closes at once though a read was left at exactly its last event', async () => {
  const { log } = await openOne();
  await log.append('worker-a', [pin('a'), pin('b'), pin('c')], 'no-stream');
  for (let i = 0; i < 3; i++) {
    for await (const recorded of log.readForwards('worker-a')) if (by(recorded) === 'c') break;
  }
  let closed = false;
  void log.close().then(() => (closed = true));
  await until(() => closed);
});

it('serves on after more subscriptions than a connection may have open calls', async () => {
  const { log } = await openOne();
  await log.append('worker-a', [pin('a'), pin('b')], 'no-stream');
  for (let i = 0; i < 120; i++) {
    let heard = 0;
    const subscription = log.subscribe('worker-a', { onEvent: () => void (heard += 1) });
    // Some are left in the middle, some before their first event.
    if (i % 2 === 0) await until(() => heard > 0);
    await subscription.stop();
  }
  expect((await log.readBackwards('worker-a', 1)).map(by)).toEqual(['b']);
});

it('keeps what waits on one connection apart from another that breaks: its answer still arrives', async () => {
  const [one, other] = [await openOne(), await openOne()];
  for (const { log } of [one, other]) await log.append('worker-a', [pin('a')], 'no-stream');
  one.node.freeze();
  other.node.freeze();
  const [waiting, broken] = [one, other].map(({ log }) =>
    log.append('worker-a', [pin('b')], 0, { deadlineMs: 30_000 }),
  );
  await other.node.kill9();
  expect(await broken).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  one.node.thaw();
  expect(await waiting).toMatchObject({ ok: true, value: { revision: 1 } });
});

it('takes an answer that comes after its append was given up for nothing, and goes on', async () => {
  const { node, log } = await openOne();
  await log.append('worker-a', [pin('a')], 'no-stream');
  node.freeze();
  expect(await log.append('worker-a', [pin('b')], 0, { deadlineMs: 50 })).toMatchObject({ ok: false });
  node.thaw();
  await until(async () => (await log.readBackwards('worker-a', 1)).map(by)[0] === 'b');
  expect(await log.append('worker-a', [pin('c')], 1)).toMatchObject({ ok: true, value: { revision: 2 } });
});

it('passes over data that is no JSON, which the client hands out as text, with a warning that names it', async () => {
  const { log } = await openOne();
  const broken = {
    id: randomUUID(),
    type: 'PinSet',
    data: Buffer.from('{"by":'),
    metadata: Buffer.from('{}'),
  };
  await encodedAppendsOf(log).appendEncoded('worker-a', [broken], 'any');
  await log.append('worker-a', [pin('b')], 'any');
  const heard: string[] = [];
  const subscription = log.subscribe('worker-a', { onEvent: (recorded) => void heard.push(by(recorded)) });
  await until(() => heard.length > 0);
  expect(heard).toEqual(['b']);
  expect(warnings.join()).toMatch(
    /PinSet are skipped: its data is no JSON object\. First seen at worker-a, revision 0/,
  );
  await subscription.stop();
});

it('outlives subscriptions and reads whose server goes away, whoever listens to their errors or does not', async () => {
  const { node, log } = await openOne();
  await log.append(
    'worker-a',
    Array.from({ length: 300 }, (_, n) => pin(String(n))),
    'no-stream',
  );
  let connected: boolean | undefined;
  log.subscribe('worker-a', { onEvent: () => undefined, onConnected: (is) => void (connected = is) });
  log.subscribeAll(['worker-'], { onEvent: () => undefined });
  const read = log.readForwards('worker-a')[Symbol.asyncIterator]();
  await read.next();
  await until(() => connected === true);
  await node.kill9();
  await until(() => connected === false);
  const rest = (async () => {
    while (!(await read.next()).done);
  })();
  // It had everything already, or it says that the log is away; it does not hang.
  await rest.catch((error: unknown) =>
    expect(error).toMatchObject({ error: { code: 'event_log_unavailable' } }),
  );
  await node.restart();
  await until(() => connected === true, 30_000);
});
