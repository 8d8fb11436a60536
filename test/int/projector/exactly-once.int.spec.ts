import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LogPosition } from '#domain/events/index.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import type { ViewsDb } from '#schema/connect.js';
import { drawEvents, seeded } from '../../../apps/projector/src/testing/random-log.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';
import { type ProjectorProcess, startProjector } from '../../support/projector-process.js';
import { allRows, appendDrawn, freshRows, openTestViews, readLog, until } from '../../support/views.js';

/** More kills find rarer moments: BERTH_TEST_KILLS=200. */
const KILLS = Number(process.env['BERTH_TEST_KILLS'] ?? 20);
/** Enough for several batches of each process. */
const EVENTS_PER_KILL = 200;
/** One that folds and others that start or stand by. */
const COPIES = KILLS > 20 ? 6 : 3;
const SEED = Number(process.env['BERTH_TEST_SEED'] ?? 1);

describe('the projector process on a real log and a real Postgres', () => {
  let postgres: TestPostgres;
  let node: EmbeddedNode;
  let events: EventLog;
  const home = mkdtempSync(join(tmpdir(), 'berth-projector-'));
  const running = new Set<ProjectorProcess>();
  const opened: ViewsDb[] = [];

  beforeAll(async () => {
    [postgres, node] = await Promise.all([startPostgres(), startEmbeddedNode()]);
    events = openEventLog({ url: node.url, by: 'test', now: () => Date.now() });
  });
  afterEach(async () => {
    await Promise.all([...running].map((process) => process.kill9()));
    running.clear();
    await Promise.all(opened.splice(0).map((db) => db.destroy()));
  });
  afterAll(async () => {
    await events.close();
    await node.stop();
    await postgres.stop();
    rmSync(home, { recursive: true, force: true });
  });

  const database = async () => {
    const url = await postgres.createDatabase();
    const db = openTestViews(url);
    opened.push(db);
    return { url, db };
  };
  const start = (databaseUrl: string) => {
    const process = startProjector({ eventstoreUrl: node.url, databaseUrl, home });
    running.add(process);
    return process;
  };
  const checkpoint = async (db: ViewsDb): Promise<string | null | undefined> => {
    const found = await sql<{ at: string | null }>`select commit_position as at from views.checkpoints`
      .execute(db)
      .catch(() => undefined);
    return found?.rows[0]?.at;
  };
  const reached = (db: ViewsDb, end: LogPosition) =>
    until(
      `checkpoint ${end.commit}`,
      async () => BigInt((await checkpoint(db)) ?? -1) >= end.commit,
      120_000,
    );

  it('waits for a log that is away, and goes on when it is back', async () => {
    const { url, db } = await database();
    const projector = start(url);
    expect(await projector.ready).toEqual({ views: 'following' });
    await node.kill9();
    await until('it says so', () => projector.output().includes('The event log is out of reach'));
    await node.restart();
    await appendDrawn(events, drawEvents(77, 300));
    const log = await readLog(events);
    await reached(db, log.at(-1)!.position);
    expect(await allRows(db)).toEqual(await freshRows(log));
    expect(await projector.stop()).toBe(0);
  }, 120_000);

  it('stands by while another copy is active and takes over when that one is killed', async () => {
    const { url, db } = await database();
    const first = start(url);
    expect(await first.ready).toEqual({ views: 'following' });
    const second = start(url);
    expect(await second.ready).toEqual({ views: 'standby' });
    await first.kill9();
    await appendDrawn(events, drawEvents(78, 200));
    const log = await readLog(events);
    await reached(db, log.at(-1)!.position);
    expect(await allRows(db)).toEqual(await freshRows(log));
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('is ready without Postgres, and stops in order while it waits', async () => {
    const projector = startProjector({
      eventstoreUrl: node.url,
      databaseUrl: 'postgres://berth@127.0.0.1:1/none',
      home,
    });
    running.add(projector);
    expect(await projector.ready).toEqual({ views: 'waiting' });
    expect(await projector.stop()).toBe(0);
  }, 60_000);

  it(
    `folds each event exactly once when it is killed ${KILLS} times at random under load`,
    async () => {
      const { url, db } = await database();
      const random = seeded(SEED);
      const drawn = drawEvents(SEED, KILLS * EVENTS_PER_KILL);
      // The load goes on while processes are killed, and each kill lets it go on further: no kill lacks events to fold.
      let wanted = 0;
      let appended = 0;
      const killed = new AbortController();
      const load = (async () => {
        while (!killed.signal.aborted) {
          const next = drawn.slice(appended, Math.min(wanted, appended + 40));
          await appendDrawn(events, next);
          appended += next.length;
          if (next.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        }
      })();
      load.catch(() => undefined);
      // Copies that stand by take over at once; so the time to start one is not between two kills.
      const copies = new Map<string, ProjectorProcess>();
      let started = 0;
      const startOne = async () => {
        const name = `copy-${(started += 1)}`;
        const named = new URL(url);
        named.searchParams.set('application_name', name);
        const copy = start(named.toString());
        copies.set(name, copy);
        // It folds a moment before it says so, and may be killed in that moment.
        await copy.ready.catch((error: unknown) => {
          if (copies.has(name)) throw error;
        });
      };
      const starting = new Set<Promise<void>>();
      const active = async () => {
        const { rows } = await sql<{ name: string; folding: boolean }>`
          select a.application_name as name, a.xact_start is not null as folding
            from pg_locks l join pg_stat_activity a on a.pid = l.pid
           where l.locktype = 'advisory' and l.granted and a.datname = current_database()`.execute(db);
        return rows.find(({ name }) => copies.has(name));
      };
      let interrupted = 0;
      let behind = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        wanted += EVENTS_PER_KILL;
        while (copies.size < COPIES) {
          const one = startOne();
          starting.add(one);
          one.then(() => starting.delete(one)).catch(() => undefined);
        }
        const before = await checkpoint(db);
        // Most kills shall hit a process that is folding: wait until it has written, and then a random moment more.
        if (random() < 0.8)
          await until(
            `progress beyond ${String(before)} before kill ${kill}, ${appended} events of ${wanted} appended`,
            async () => (await checkpoint(db)) !== before,
            120_000,
          );
        await new Promise((resolve) => setTimeout(resolve, random() * 60));
        const { name, folding } = await until('an active projector', active, 120_000);
        const copy = copies.get(name);
        copies.delete(name);
        await copy?.kill9();
        if (copy) running.delete(copy);
        if (folding) interrupted += 1;
        if ((await checkpoint(db)) !== (await events.endPosition())?.commit.toString()) behind += 1;
      }
      killed.abort();
      await load;
      const log = await readLog(events);
      await Promise.all(starting);
      if (copies.size === 0) await startOne();
      await reached(db, log.at(-1)!.position);
      expect(await Promise.all([...copies.values()].map((copy) => copy.stop()))).toEqual(
        [...copies].map(() => 0),
      );
      if (KILLS > 20)
        process.stdout.write(
          `${KILLS} kills over ${log.length} events: ${interrupted} within a transaction, ${behind} before the end of the log\n`,
        );
      // A kill that always found an idle process would show nothing.
      expect(behind).toBeGreaterThan(KILLS / 2);
      const rows = await allRows(db);
      expect(rows['set_aside_events']).toEqual([]);
      expect(rows).toEqual(await freshRows(log));
    },
    120_000 + KILLS * 15_000,
  );
});
