/**
 * Figures of the views: how fast the projector folds a log into Postgres, how far it lags behind live events, and how fast
 * a replay goes. A real embedded node, a real Postgres and the projector as processes of their own.
 * Run: npx tsc -b && node dist/test/bench/projector/projector.js [--events 100000] [--seconds 8] [--per-second 500]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import type { LogPosition } from '#domain/events/index.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { openViews, type ViewsDb } from '#schema/connect.js';
import { startPostgres } from '../../../apps/cli/src/up/postgres/server.js';
import { startProjector } from '../../support/projector-process.js';
import { startReplay } from '../../support/replay-process.js';
import { quantile } from '../measures.js';
import { cpuSecondsOf, postgresProcesses } from './cpu.js';
import { DrawnLoad, type Part } from '../../support/drawn-load.js';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '8' },
    'per-second': { type: 'string', default: '500' },
  },
});

const say = (name: string, value: string, budget = ''): void =>
  console.log(`${name.padEnd(42)} ${value.padStart(14)}   ${budget}`);
const whole = (value: number): string => Math.round(value).toLocaleString('en');

async function append(log: EventLog, { stream, events }: Part): Promise<LogPosition> {
  const outcome = await log.append(
    stream,
    events.map(({ id, event, at }) => ({ id, event, at, cause: { correlationId: id, causationId: id } })),
    'any',
  );
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.error));
  return outcome.value.position;
}

/** Fills the log, with 16 appends in flight. @returns how many events it took. */
async function fill(log: EventLog, wanted: number): Promise<number> {
  const load = new DrawnLoad();
  let events = 0;
  const writer = async () => {
    while (events < wanted) {
      for (const part of load.life()) {
        events += part.events.length;
        await append(log, part);
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, writer));
  return events;
}

async function committed(db: ViewsDb): Promise<bigint> {
  const found = await sql<{ at: string | null }>`select commit_position as at from views.checkpoints`
    .execute(db)
    .catch(() => undefined);
  return BigInt(found?.rows[0]?.at ?? -1);
}

async function reached(db: ViewsDb, end: LogPosition, everyMs = 5): Promise<void> {
  while ((await committed(db)) < end.commit) await new Promise((resolve) => setTimeout(resolve, everyMs));
}

/** From the acknowledged append to the moment that a reader of the views can see it. */
async function liveLag(log: EventLog, db: ViewsDb, seconds: number, perSecond: number): Promise<number[]> {
  const waiting: { position: bigint; at: number }[] = [];
  const lags: number[] = [];
  const until = performance.now() + seconds * 1000;
  const load = new DrawnLoad();
  const eventsPerPart = 4;
  const watch = (async () => {
    while (performance.now() < until || waiting.length > 0) {
      const seen = await committed(db);
      const now = performance.now();
      while (waiting[0] && waiting[0].position <= seen) lags.push(now - (waiting.shift()?.at ?? now));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  let next = performance.now();
  while (performance.now() < until) {
    const { commit } = await append(log, load.calls({ modelKey: 'owner/model-1' }, eventsPerPart / 2));
    waiting.push({ position: commit, at: performance.now() });
    next += (1000 * eventsPerPart) / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
  }
  await watch;
  return lags.sort((a, b) => a - b);
}

const postgresCpu = (): number => postgresProcesses().reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);

const home = mkdtempSync(join(tmpdir(), 'berth-bench-'));
const [node, postgres] = await Promise.all([
  startEmbeddedNode(undefined, { secure: true }),
  startPostgres({ folder: join(home, 'postgres'), logFile: join(home, 'postgres.log') }),
]);
const log = openEventLog({ url: node.url, by: 'bench', now: Date.now });
const db = openViews(postgres.url, { applicationName: 'bench', maxConnections: 2 });
console.log(`${cpus().length} cores, Node ${process.version}, load ${loadavg()[0]?.toFixed(1) ?? ''}`);
try {
  const events = await fill(log, Number(values.events));
  const end = await log.endPosition();
  if (!end) throw new Error('The log is empty.');
  const before = postgresCpu();
  const nodeBefore = cpuSecondsOf(node.pid);
  const started = performance.now();
  const projector = startProjector({ eventstoreUrl: node.url, databaseUrl: postgres.url, home });
  await projector.ready;
  await reached(db, end);
  const seconds = (performance.now() - started) / 1000;
  say(`projection, ${whole(events)} events, with start`, `${whole(events / seconds)}/s`, '≥ 10,000/s');
  const perEvent = (cpuSeconds: number) => `${((cpuSeconds * 1e6) / events).toFixed(0)} µs`;
  say('  CPU per event, projector', perEvent(cpuSecondsOf(projector.pid)));
  say('  CPU per event, event node', perEvent(cpuSecondsOf(node.pid) - nodeBefore));
  const after = postgresCpu();
  say('  CPU per event, Postgres', perEvent(after - before));
  const lags = await liveLag(log, db, Number(values.seconds), Number(values['per-second']));
  say(`live lag at ${values['per-second']} events/s, p50`, `${quantile(lags, 0.5).toFixed(1)} ms`);
  say('live lag, p99', `${quantile(lags, 0.99).toFixed(1)} ms`, '≤ 100 ms');
  await projector.stop();
  const replayBefore = {
    postgres: postgresCpu(),
    node: cpuSecondsOf(node.pid),
    own: cpuSecondsOf(process.pid),
  };
  const replayStarted = performance.now();
  const replay = startReplay({ eventstoreUrl: node.url, databaseUrl: postgres.url, home }, '--json');
  const { code, stdout, stderr } = await replay.ended;
  const replaySeconds = (performance.now() - replayStarted) / 1000;
  const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as { replayed?: { events: number } };
  if (code !== 0 || !last.replayed) throw new Error(`The replay failed: ${stderr}`);
  const replayed = last.replayed.events;
  say(
    `replay, ${whole(replayed)} events, with start and swap`,
    `${whole(replayed / replaySeconds)}/s`,
    '≥ 10,000/s',
  );
  const perReplayed = (cpuSeconds: number) => `${((cpuSeconds * 1e6) / replayed).toFixed(0)} µs`;
  // What its children used is counted to this process once they have ended.
  say('  CPU per event, replay', perReplayed(cpuSecondsOf(process.pid) - replayBefore.own));
  say('  CPU per event, event node', perReplayed(cpuSecondsOf(node.pid) - replayBefore.node));
  say('  CPU per event, Postgres', perReplayed(postgresCpu() - replayBefore.postgres));
} finally {
  await db.destroy();
  await log.close();
  await node.stop();
  await postgres.stop();
  rmSync(home, { recursive: true, force: true });
}
