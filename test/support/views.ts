import { sql } from 'kysely';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import { TABLES } from '#schema/db.types.js';
import { openViews, type ViewsDb } from '#schema/connect.js';
import { PREFIXES } from '../../apps/projector/src/handlers/index.js';
import { foldBatch } from '../../apps/projector/src/rows/fold.js';
import { VIEW_TABLES } from '../../apps/projector/src/rows/views.js';
import type { ProjectorLog } from '../../apps/projector/src/run/projector.js';
import { MemoryRows } from '../../apps/projector/src/testing/memory-rows.js';
import type { Drawn } from '../../apps/projector/src/testing/random-log.js';

export type Rows = Record<string, readonly unknown[]>;

export const openTestViews = (url: string): ViewsDb =>
  openViews(url, { maxConnections: 2, applicationName: 'test', onIdleError: () => undefined });

const byKey = (table: keyof typeof TABLES) => (row: unknown) =>
  JSON.stringify(TABLES[table].key.map((column) => (row as Record<string, unknown>)[column]));

const sorted = (table: keyof typeof TABLES, rows: readonly unknown[]): unknown[] => {
  const key = byKey(table);
  return [...rows].sort((a, b) => (key(a) < key(b) ? -1 : 1));
};

/** Every row of every view, in the order of the keys. */
export async function allRows(db: ViewsDb, schema = 'views'): Promise<Rows> {
  const tables: Rows = {};
  for (const table of VIEW_TABLES) {
    tables[table] = sorted(table, (await sql`select * from ${sql.id(schema, table)}`.execute(db)).rows);
  }
  return tables;
}

/** What a log gives when it is folded afresh, in memory, one event after the other. */
export async function freshRows(log: readonly Recorded<BerthEvent>[]): Promise<Rows> {
  const store = new MemoryRows();
  for (const recorded of log) await foldBatch(store, [recorded]);
  return Object.fromEntries(VIEW_TABLES.map((table) => [table, sorted(table, store.rows(table))]));
}

/** The log as the projector sees it, up to its end now. */
export async function readLog(events: EventLog): Promise<Recorded<BerthEvent>[]> {
  const all: Recorded<BerthEvent>[] = [];
  await new Promise<void>((resolve, reject) => {
    const subscription = events.subscribeAll(PREFIXES, {
      onEvent: (recorded) => void all.push(recorded),
      onCaughtUp: () => {
        resolve();
        void subscription.stop();
      },
    });
    subscription.ended.catch(reject);
  });
  return all;
}

/** Ends of streams that this process has written: an exact revision is what makes a log take an event id twice. */
const ends = new WeakMap<EventLog, Map<string, number>>();

async function endOf(events: EventLog, stream: string): Promise<number> {
  const known = ends.get(events) ?? new Map<string, number>();
  ends.set(events, known);
  return known.get(stream) ?? (await events.readBackwards(stream, 1))[0]?.revision ?? -1;
}

/** Appends drawn events in their order, copies among them, in batches per run of one stream. */
export async function appendDrawn(events: EventLog, drawn: readonly Drawn[]): Promise<void> {
  for (let from = 0; from < drawn.length;) {
    const stream = drawn[from]!.stream;
    let to = from;
    const ids = new Set<string>();
    while (to < drawn.length && drawn[to]!.stream === stream && !ids.has(drawn[to]!.id))
      ids.add(drawn[to++]!.id);
    const end = await endOf(events, stream);
    const outcome = await events.append(
      stream,
      drawn.slice(from, to).map(({ id, event, at }) => ({
        id,
        event,
        at,
        cause: { correlationId: id, causationId: id },
      })),
      end < 0 ? 'no-stream' : end,
    );
    if (!outcome.ok) throw new Error(`append: ${JSON.stringify(outcome.error)}`);
    ends.get(events)?.set(stream, outcome.value.revision);
    from = to;
  }
}

/** A log of a test: what was said, by level. */
export function listeningLog(): ProjectorLog & { readonly said: string[] } {
  const said: string[] = [];
  const hear = (level: string) => (_fields: object, message: string) =>
    void said.push(`${level}: ${message}`);
  return { said, info: hear('info'), warn: hear('warn'), error: hear('error') };
}

/** Waits for a fact, with a deadline; tells what was last seen when it does not come. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`It did not come within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}
