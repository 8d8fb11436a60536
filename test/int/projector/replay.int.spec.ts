import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { SAMPLES } from '#events/testing/samples.js';
import { packageRoot } from '#runtime/process-info.js';
import type { ViewsDb } from '#schema/connect.js';
import { skippedWhen } from '#runtime/testing/skipped.js';
import { drawEvents } from '../../../apps/projector/src/testing/random-log.js';
import { DrawnLoad, type Part } from '../../support/drawn-load.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';
import { type ProjectorProcess, startProjector } from '../../support/projector-process.js';
import { type ReplayProcess, startReplay } from '../../support/replay-process.js';
import { allRows, appendDrawn, freshRows, openTestViews, readLog, until } from '../../support/views.js';

describe('berth replay, on a real log and a real Postgres', () => {
  let postgres: TestPostgres;
  let node: EmbeddedNode;
  let events: EventLog;
  const home = mkdtempSync(join(tmpdir(), 'berth-replay-'));
  const processes = new Set<ProjectorProcess | ReplayProcess>();
  const opened: ViewsDb[] = [];

  beforeAll(async () => {
    [postgres, node] = await Promise.all([startPostgres(), startEmbeddedNode()]);
    events = openEventLog({ url: node.url, by: 'test', now: () => Date.now() });
    await appendDrawn(events, drawEvents(1, 800));
    await Promise.all(Array.from({ length: 6 }, () => fill(new DrawnLoad(3), 1000)));
  }, 120_000);
  afterEach(async () => {
    await Promise.all([...processes].map(async (process) => process.kill9()));
    processes.clear();
    await Promise.all(opened.splice(0).map((db) => db.destroy()));
  });
  afterAll(async () => {
    await events.close();
    await node.stop();
    await postgres.stop();
    rmSync(home, { recursive: true, force: true });
  });

  const append = async ({ stream, events: parts }: Part): Promise<void> => {
    const outcome = await events.append(
      stream,
      parts.map(({ id, event, at }) => ({ id, event, at, cause: { correlationId: id, causationId: id } })),
      'any',
    );
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.error));
  };
  const fill = async (load: DrawnLoad, wanted: number): Promise<void> => {
    for (let written = 0; written < wanted;) {
      for (const part of load.life()) {
        await append(part);
        written += part.events.length;
      }
    }
  };
  const database = async () => {
    const databaseUrl = await postgres.createDatabase();
    const db = openTestViews(databaseUrl);
    opened.push(db);
    return { urls: { eventstoreUrl: node.url, databaseUrl, home }, db };
  };
  const replay = async (urls: { eventstoreUrl: string; databaseUrl: string }, ...args: string[]) => {
    const process = startReplay({ ...urls, home }, ...args);
    processes.add(process);
    return process.ended;
  };
  const schemas = async (db: ViewsDb): Promise<string[]> =>
    (
      await sql<{ name: string }>`
        select nspname as name from pg_namespace where nspname like 'views%' order by 1`.execute(db)
    ).rows.map((row) => row.name);
  const checkpoint = async (db: ViewsDb, schema: string): Promise<bigint> => {
    const found = await sql<{ at: string | null }>`
      select commit_position as at from ${sql.id(schema, 'checkpoints')}`
      .execute(db)
      .catch(() => undefined);
    return BigInt(found?.rows[0]?.at ?? -1);
  };

  it('folds the whole log where there are no views yet, and proves them right', async () => {
    const { urls, db } = await database();
    expect(await replay(urls, '--verify')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There are no live views yet') as string,
    });
    const done = await replay(urls);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/folded anew from [\d,]+ events/) as string,
    });
    expect(await allRows(db)).toEqual(await freshRows(await readLog(events)));
    const indexes = await sql<{ name: string }>`
      select indexname as name from pg_indexes where schemaname = 'views'`.execute(db);
    expect(indexes.rows.map((row) => row.name)).toContain('calls_by_position');
    expect(await replay(urls, '--verify')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Every one of [\d,]+ rows is what [\d,]+ events give/) as string,
    });
    expect(await schemas(db)).toEqual(['views']);
  }, 180_000);

  it('names each row that was tampered with and leaves it; a replay mends them', async () => {
    const { urls, db } = await database();
    await replay(urls);
    const sound = await allRows(db);
    const calls = sound['calls'] as { call_id: string; outcome: string | null }[];
    const [changed, removed] = calls.filter((call) => call.outcome === 'completed');
    await sql`update views.calls set status = 599, outcome = 'lied' where call_id = ${changed!.call_id}`.execute(
      db,
    );
    await sql`delete from views.calls where call_id = ${removed!.call_id}`.execute(db);
    await sql`insert into views.recent_events (stream, event_ids) values ('worker-nobody', '{}')`.execute(db);
    const tampered = await allRows(db);

    const text = await replay(urls, '--verify');
    expect(text.code).toBe(1);
    expect(text.stdout).toContain(
      `calls call_id="${changed!.call_id}": status is 599, the log gives 200; outcome is "lied", the log gives "completed"`,
    );
    expect(text.stdout).toContain(`calls call_id="${removed!.call_id}": missing, the log gives it`);
    expect(text.stdout).toContain('recent_events stream="worker-nobody": there, the log does not give it');
    expect(text.stdout).toContain('3 rows differ');

    const lines = (await replay(urls, '--verify', '--json')).stdout.trim().split('\n');
    const said = lines.map(
      (line) => JSON.parse(line) as { difference?: { kind: string }; verified?: object },
    );
    expect(said.flatMap(({ difference }) => difference?.kind ?? []).sort()).toEqual([
      'changed',
      'missing',
      'surplus',
    ]);
    expect(said.at(-1)?.verified).toMatchObject({ differences: 3 });
    expect(await allRows(db)).toEqual(tampered);

    expect(await replay(urls)).toMatchObject({ code: 0 });
    expect(await allRows(db)).toEqual(sound);
  }, 180_000);

  it('swaps all at once: a reader has the old rows or the new ones, never none and never some of each', async () => {
    const { urls, db } = await database();
    await replay(urls);
    // The live rows are made wrong in every view that is read, so that each says which fold it is of.
    await sql`update views.calls set status = 599`.execute(db);
    await sql`update views.residents set artifact = 'wrong'`.execute(db);
    const look = sql<{ calls: number; oldCalls: number; residents: number; oldResidents: number }>`
      select (select count(*)::int from views.calls) as calls,
             (select count(*)::int from views.calls where status = 599) as "oldCalls",
             (select count(*)::int from views.residents) as residents,
             (select count(*)::int from views.residents where artifact = 'wrong') as "oldResidents"`;
    const seen = async (on: ViewsDb) => {
      const { calls, oldCalls, residents, oldResidents } = (await look.execute(on)).rows[0]!;
      const kind =
        oldCalls === 0 && oldResidents === 0
          ? 'new'
          : oldCalls === calls && oldResidents === residents
            ? 'old'
            : 'mixed';
      return `${kind}: ${calls} calls, ${residents} residents`;
    };
    const before = await seen(db);
    const reading = new AbortController();
    const found: string[] = [];
    const reader = (async () => {
      const own = openTestViews(urls.databaseUrl);
      opened.push(own);
      while (!reading.signal.aborted) found.push(await seen(own));
    })();
    reader.catch(() => undefined);
    // One that reads on, view by view, while the swap comes: the swap waits for it.
    const within = await db.transaction().execute(async (trx) => {
      await sql`select from views.calls limit 1`.execute(trx);
      const running = startReplay(urls, '--json');
      processes.add(running);
      await until('the swap waits', () => Promise.resolve(running.said().includes('"step":"swap"')), 120_000);
      const waits = sql<{ waits: boolean }>`
        select exists (select from pg_locks where not granted and mode = 'AccessExclusiveLock') as waits`;
      await until('for this reader', async () => (await waits.execute(trx)).rows[0]?.waits, 60_000);
      return { running, seen: await seen(trx) };
    });
    expect(within.seen).toBe(before);
    expect(await within.running.ended).toMatchObject({ code: 0 });
    const after = await seen(db);
    reading.abort();
    await reader;
    expect(after).toBe(before.replace('old', 'new'));
    expect(found.length).toBeGreaterThan(10);
    expect(new Set(found)).toEqual(new Set([before, after]));
    // Nothing goes back: once new, always new.
    expect(found.lastIndexOf(before)).toBeLessThan(found.indexOf(after));
  }, 180_000);

  it('loses and doubles nothing while the projector goes on and events come in; so does a verification', async () => {
    const { urls, db } = await database();
    const projector = startProjector(urls);
    processes.add(projector);
    await projector.ready;
    await until('the views', async () => (await checkpoint(db, 'views')) > 0n);
    const writing = new AbortController();
    const load = new DrawnLoad(2);
    const writer = (async () => {
      while (!writing.signal.aborted) {
        for (const part of load.life()) await append(part);
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
    })();
    for (let round = 0; round < 2; round++) expect(await replay(urls)).toMatchObject({ code: 0 });
    expect(await replay(urls, '--verify')).toMatchObject({ code: 0 });
    writing.abort();
    await writer;
    const log = await readLog(events);
    await until(
      'the end',
      async () => (await checkpoint(db, 'views')) >= log.at(-1)!.position.commit,
      60_000,
    );
    expect(await projector.stop()).toBe(0);
    expect(await allRows(db)).toEqual(await freshRows(log));
    expect(await schemas(db)).toEqual(['views']);
  }, 240_000);

  it('leaves the live views as they are when it is killed, and what it left is removed', async () => {
    const { urls, db } = await database();
    await replay(urls);
    const before = await allRows(db);
    const killed = async () => {
      const process = startReplay(urls);
      processes.add(process);
      await until('the middle', async () => (await checkpoint(db, 'views_next')) > 0n, 120_000);
      process.kill9();
      await process.ended;
    };
    await killed();
    expect(await schemas(db)).toEqual(['views', 'views_next']);
    expect(await allRows(db)).toEqual(before);
    const projector = startProjector(urls);
    processes.add(projector);
    await projector.ready;
    await until('the leftovers to be gone', async () => (await schemas(db)).join() === 'views');
    expect(await projector.stop()).toBe(0);
    await killed();
    expect(await replay(urls)).toMatchObject({ code: 0 });
    expect(await schemas(db)).toEqual(['views']);
    expect(await allRows(db)).toEqual(await freshRows(await readLog(events)));
  }, 240_000);

  it('has one turn: a second one says that another runs', async () => {
    const { urls, db } = await database();
    await sql`select pg_advisory_lock(hashtextextended('berth replay views', 0))`.execute(db);
    expect(await replay(urls)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Another replay of these views runs') as string,
    });
  }, 60_000);

  it('derives the facts of the log again and says which decisions used others', async () => {
    const { urls } = await database();
    const text = await replay(urls, '--facts');
    expect(text).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('load-seconds (rule 1)') as string,
    });
    const { stdout } = await replay(urls, '--facts', '--json');
    const report = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as {
      decisions: number;
      facts: unknown[];
    };
    expect(report.decisions).toBeGreaterThan(0);
    expect(report.facts.length).toBeGreaterThan(0);
  }, 120_000);

  it('lists the line of a decision that used another figure than the log gives', async () => {
    const { urls } = await database();
    const ids = { modelKey: 'odd/one', decisionId: 'decision-of-another-figure', residentId: 'odd' };
    const part = (stream: string, type: 'LoadMeasured' | 'PlacementDecided', over: object): Part => {
      const data = { ...SAMPLES[type], ...over } as never;
      return {
        stream,
        events: [{ id: randomUUID(), event: { type, data }, at: '2026-03-01T00:00:00.000Z' }],
      };
    };
    await append(part('history-odd~odd/one', 'LoadMeasured', { residentId: 'odd', seconds: 4 }));
    await append(part('worker-odd', 'PlacementDecided', { ...ids, predicted: { loadSeconds: 9 } }));
    const { stdout } = await replay(urls, '--facts');
    expect(stdout).toContain(
      '2026-03-01T00:00:00.000Z odd/one, decision decision-of-another-figure: load-seconds seconds was 9, is 4',
    );
  }, 60_000);

  it.skipIf(
    skippedWhen(
      !existsSync('/usr/bin/script'),
      'the bar of a replay needs a terminal, which script(1) gives',
    ),
  )(
    'shows a person at a terminal a bar with the rate and the time left',
    async () => {
      const { urls } = await database();
      const command = `"${process.execPath}" "${join(packageRoot(), 'dist/apps/projector/src/replay/main.js')}"`;
      const { stdout } = await promisify(execFile)('/usr/bin/script', ['-qefc', command, '/dev/null'], {
        env: {
          ...process.env,
          TERM: 'xterm',
          EVENTSTORE_URL: urls.eventstoreUrl,
          DATABASE_URL: urls.databaseUrl,
        },
      });
      expect(stdout).toMatch(/fold .* \d+% {2}[\d,]+ events {2}[\d,]+\/s {2}[\d.]+ s left/);
      expect(stdout).toMatch(/folded anew from [\d,]+ events/);
    },
    60_000,
  );

  it('says what is missing when a server is away', async () => {
    const { urls } = await database();
    const away = { ...urls, databaseUrl: 'postgres://berth@127.0.0.1:1/none' };
    expect(await replay(away)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Postgres is out of reach') as string,
    });
  }, 60_000);
});
