import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BackOff } from '#events/back-off.js';
import { MemoryLog } from '#events/testing/memory-log.js';
import type { ViewsDb } from '#schema/connect.js';
import { CHECKPOINT_NAME } from '../../../apps/projector/src/run/checkpoint.js';
import { Projector, type ProjectorOptions } from '../../../apps/projector/src/run/projector.js';
import { drawEvents } from '../../../apps/projector/src/testing/random-log.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';
import {
  allRows,
  appendDrawn,
  freshRows,
  listeningLog,
  openTestViews,
  readLog,
  until,
} from '../../support/views.js';

describe('the projector', () => {
  let postgres: TestPostgres;
  const opened: ViewsDb[] = [];
  const running: Projector[] = [];

  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((projector) => projector.stop()));
    await Promise.all(opened.splice(0).map((db) => db.destroy()));
  });
  afterAll(() => postgres.stop());

  const database = async () => {
    const url = await postgres.createDatabase();
    const db = openTestViews(url);
    opened.push(db);
    return { url, db };
  };
  const project = (url: string, events: MemoryLog, more: Partial<ProjectorOptions> = {}) => {
    const log = listeningLog();
    const projector = new Projector({
      databaseUrl: url,
      schema: 'views',
      events,
      log,
      backOff: new BackOff({ firstMs: 20, mostMs: 50 }),
      ...more,
    });
    running.push(projector);
    const ended = projector.run();
    ended.catch(() => undefined);
    return { projector, log, ended };
  };
  const reached = async (db: ViewsDb, events: MemoryLog) => {
    // Of the events that the projector follows: readings are none.
    const end = (await readLog(events)).at(-1)?.position.commit.toString();
    await until(`checkpoint ${end ?? 'none'}`, async () => {
      const found = await sql<{ at: string }>`select commit_position as at from views.checkpoints`
        .execute(db)
        .catch(() => undefined);
      return found?.rows[0]?.at === end;
    });
  };

  it('folds a log from its first event, and what is appended while it runs', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    const drawn = drawEvents(1, 1500);
    await appendDrawn(events, drawn.slice(0, 1200));
    project(url, events);
    await reached(db, events);
    await appendDrawn(events, drawn.slice(1200));
    await reached(db, events);
    expect(await allRows(db)).toEqual(await freshRows(await readLog(events)));
  });

  it('goes on from the checkpoint after an ordered stop', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    await appendDrawn(events, drawEvents(2, 300));
    const first = project(url, events);
    await reached(db, events);
    await first.projector.stop();
    await appendDrawn(events, drawEvents(3, 300));
    const second = project(url, events);
    await reached(db, events);
    expect(await allRows(db)).toEqual(await freshRows(await readLog(events)));
    expect(second.log.said.join()).not.toContain('rebuilt');
  });

  it('has one active copy at a time: a second one waits and takes over', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    await appendDrawn(events, drawEvents(4, 200));
    const first = project(url, events);
    await reached(db, events);
    const second = project(url, events);
    await second.projector.standby;
    await first.projector.stop();
    await second.projector.following;
    await appendDrawn(events, drawEvents(5, 200));
    await reached(db, events);
    expect(await allRows(db)).toEqual(await freshRows(await readLog(events)));
  });

  it('folds everything again, and says so, when the address holds another log', async () => {
    const { url, db } = await database();
    const old = new MemoryLog({ logId: '00000000-0000-4000-8000-00000000000a' });
    await appendDrawn(old, drawEvents(6, 400));
    const first = project(url, old);
    await reached(db, old);
    await first.projector.stop();
    const other = new MemoryLog({ logId: '00000000-0000-4000-8000-00000000000b' });
    await appendDrawn(other, drawEvents(7, 150));
    const second = project(url, other);
    await until('the new log', () =>
      second.log.said.some((line) => /made from event log .*0a, and this is .*0b/.test(line)),
    );
    await reached(db, other);
    expect(await allRows(db)).toEqual(await freshRows(await readLog(other)));
  });

  it('folds everything again when the log was set back to before the checkpoint', async () => {
    const { url, db } = await database();
    const whole = new MemoryLog();
    const drawn = drawEvents(8, 400);
    await appendDrawn(whole, drawn);
    const first = project(url, whole);
    await reached(db, whole);
    await first.projector.stop();
    const restored = new MemoryLog();
    await appendDrawn(restored, drawn.slice(0, 100));
    const second = project(url, restored);
    await until('the words', () =>
      second.log.said.some((line) => line.includes('restored from an earlier state')),
    );
    await reached(db, restored);
    expect(await allRows(db)).toEqual(await freshRows(await readLog(restored)));
  });

  it('sets an event aside that no view can take, says so, and folds the rest', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    const drawn = drawEvents(9, 60).filter((one) => one.event.type !== 'CallStarted');
    const bad = {
      stream: 'calls-owner/model',
      id: '00000009-0000-7000-8000-0000000fffff',
      at: '2026-01-01T00:00:00.000Z',
      event: { type: 'CallStarted', data: { callId: 'bad', modelKey: 'm', receivedAt: 'not a time' } },
    } as never;
    await appendDrawn(events, [...drawn.slice(0, 30), bad, ...drawn.slice(30)]);
    const { log } = project(url, events);
    await reached(db, events);
    const rows = await allRows(db);
    expect(rows['set_aside_events']).toEqual([
      expect.objectContaining({ type: 'CallStarted', error: expect.stringMatching(/not a time/) as string }),
    ]);
    expect(log.said.some((line) => /^error: No view could take this event/.test(line))).toBe(true);
    const sound = (await readLog(events)).filter((one) => one.id !== '00000009-0000-7000-8000-0000000fffff');
    expect({ ...rows, set_aside_events: [] }).toEqual(await freshRows(sound));
  });

  it('keeps text that Postgres cannot hold, with the broken characters marked', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    const failed = drawEvents(10, 4000).find((one) => one.event.type === 'PlacementRefused')!;
    const event = {
      ...failed,
      event: { ...failed.event, data: { ...failed.event.data, reason: 'a\u0000b\ud800c' } },
    };
    await appendDrawn(events, [event as never]);
    project(url, events);
    await reached(db, events);
    const [row] = (await allRows(db))['decisions'] as { reason: string }[];
    expect(row?.reason).toBe('a\ufffdb\ufffdc');
  });

  it('waits for a Postgres that went away, in order or by a crash, and catches up', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    const { projector, log } = project(url, events);
    await projector.following;
    for (const [round, end] of [() => postgres.halt(), () => postgres.kill()].entries()) {
      await appendDrawn(events, drawEvents(20 + round, 200));
      await end();
      await appendDrawn(events, drawEvents(30 + round, 200));
      await until('the loss is said', () =>
        log.said.some((line) => line.includes('Postgres is out of reach')),
      );
      await postgres.resume();
      await reached(db, events);
      log.said.length = 0;
    }
    expect(await allRows(db)).toEqual(await freshRows(await readLog(events)));
  }, 180_000);

  it('starts before its Postgres is there', async () => {
    const { url, db } = await database();
    await postgres.halt();
    const events = new MemoryLog();
    await appendDrawn(events, drawEvents(40, 50));
    const { log } = project(url, events);
    await until('a try', () => log.said.some((line) => line.includes('Postgres is out of reach')));
    await postgres.resume();
    await reached(db, events);
  });

  it('gives up only for what a person must mend: views of a newer version', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    const first = project(url, events);
    await first.projector.following;
    await first.projector.stop();
    await sql`insert into views.migrations (name, checksum) values ('9999_later', 'x')`.execute(db);
    await expect(project(url, events).ended).rejects.toThrow(/9999_later by a newer version of Berth/);
  });

  it('writes nothing when somebody else has moved the checkpoint, and goes on from there', async () => {
    const { url, db } = await database();
    const events = new MemoryLog();
    await appendDrawn(events, drawEvents(50, 100));
    const { log } = project(url, events);
    await reached(db, events);
    const rows = await allRows(db);
    await appendDrawn(events, []);
    // As a second writer would leave it that does not see our lock (a pooler between): folded up to the end already.
    const drawn = drawEvents(51, 30);
    const ahead = (await events.endPosition())!.commit + 137n * BigInt(drawn.length);
    await sql`update views.checkpoints set commit_position = ${ahead.toString()}, prepare_position = ${ahead.toString()}
              where name = ${CHECKPOINT_NAME}`.execute(db);
    await appendDrawn(events, drawn);
    await until('the words', () => log.said.some((line) => line.includes('another projector has folded on')));
    expect(await allRows(db)).toEqual(rows);
  });
});
