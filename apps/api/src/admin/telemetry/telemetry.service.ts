import { Inject, Injectable } from '@nestjs/common';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import { readUntil } from '#events/read-until.js';
import { callView } from '../calls/call.view.js';
import { EVENT_LOG } from '../commands/command-log.js';
import { WAIT_MOST_MS, waitForViews } from '../commands/wait.interceptor.js';
import { decisionView } from '../decisions/decision.view.js';
import { evictionView } from '../evictions/eviction.view.js';
import { actionView } from '../operator/operator.repository.js';
import { pullView } from '../pulls/pulls.repository.js';
import { residentView } from '../residents/resident.view.js';
import { ViewsReader } from '../views/views-reader.js';
import type { ViewsDb } from '#schema/connect.js';

interface Table {
  readonly prefix: string;
  /** The row that an event changes. */
  readonly idOf: (recorded: Recorded<BerthEvent>) => string | undefined;
  readonly read: (db: ViewsDb, ids: readonly string[]) => Promise<readonly (readonly [string, unknown])[]>;
}

const field =
  (name: string) =>
  (recorded: Recorded<BerthEvent>): string | undefined => {
    const value = (recorded.event.data as Record<string, unknown>)[name];
    return typeof value === 'string' ? value : undefined;
  };

/** Which events change which rows, and how those are read. */
export const TELEMETRY_TABLES = {
  calls: {
    prefix: 'calls-',
    idOf: field('callId'),
    read: async (db, ids) =>
      (await db.selectFrom('calls').selectAll().where('call_id', 'in', ids).execute()).map((row) => [
        row.call_id,
        callView(row),
      ]),
  },
  residents: {
    prefix: 'worker-',
    idOf: field('residentId'),
    read: async (db, ids) =>
      (await db.selectFrom('residents').selectAll().where('resident_id', 'in', ids).execute()).map((row) => [
        row.resident_id,
        residentView({ ...row, worker_name: null, last_call_at: null }),
      ]),
  },
  decisions: {
    prefix: 'worker-',
    // An eviction names the decision that wanted it, and changes nothing of that.
    idOf: (recorded) => (recorded.event.type.startsWith('Evict') ? undefined : field('decisionId')(recorded)),
    read: async (db, ids) =>
      (await db.selectFrom('decisions').selectAll().where('decision_id', 'in', ids).execute()).map((row) => [
        row.decision_id,
        decisionView(row),
      ]),
  },
  evictions: {
    prefix: 'worker-',
    idOf: ({ event }) =>
      event.type === 'EvictionStarted' || event.type === 'ResidentEvicted' || event.type === 'EvictionFailed'
        ? event.data.residentId
        : undefined,
    read: async (db, ids) =>
      (await db.selectFrom('evictions').selectAll().where('resident_id', 'in', ids).execute()).map((row) => [
        row.resident_id,
        evictionView(row),
      ]),
  },
  operator: {
    prefix: 'operator-',
    idOf: field('actionId'),
    read: async (db, ids) =>
      (await db.selectFrom('operator_actions').selectAll().where('action_id', 'in', ids).execute()).map(
        (row) => [row.action_id, actionView(row)],
      ),
  },
  pulls: {
    prefix: 'pull-',
    idOf: field('pullId'),
    read: async (db, ids) =>
      (await db.selectFrom('pulls').selectAll().where('pull_id', 'in', ids).execute()).map((row) => [
        row.pull_id,
        pullView(row),
      ]),
  },
} as const satisfies Record<string, Table>;
export type TelemetryTable = keyof typeof TELEMETRY_TABLES;

export interface TelemetryPage {
  /** Each row that an event after the cursor changed, as it is now, in the order of those events. */
  readonly items: readonly unknown[];
  /** The cursor of the next question: everything up to it was looked at. */
  readonly position: string;
  /** More is there already. */
  readonly more: boolean;
}

/** Events looked at for one answer. */
const MOST_EVENTS = 5000;

/**
 * Rows that changed after a position. The log says which; the views are read once they have folded as far. So a row is
 * told again whenever it changes, and no index has to follow every change of every row.
 */
@Injectable()
export class TelemetryService {
  readonly #log: Pick<EventLog, 'subscribeAll'>;
  readonly #views: ViewsReader;
  readonly #waitMs: number;

  constructor(
    @Inject(EVENT_LOG) log: Pick<EventLog, 'subscribeAll'>,
    @Inject(ViewsReader) views: ViewsReader,
    @Inject(WAIT_MOST_MS) waitMs: number,
  ) {
    this.#log = log;
    this.#views = views;
    this.#waitMs = waitMs;
  }

  async rows(name: TelemetryTable, since: bigint, limit: number): Promise<TelemetryPage> {
    const table: Table = TELEMETRY_TABLES[name];
    const { ids, position, more } = await this.#changed(table, since, limit);
    if (ids.length === 0) return { items: [], position: position.toString(), more };
    await waitForViews(this.#views, position, this.#waitMs);
    const rows = new Map(await this.#views.read((db) => table.read(db, ids)));
    const items = ids.flatMap((id) => (rows.has(id) ? [rows.get(id)] : []));
    return { items, position: position.toString(), more };
  }

  async #changed(
    table: Table,
    since: bigint,
    limit: number,
  ): Promise<{ readonly ids: readonly string[]; readonly position: bigint; readonly more: boolean }> {
    const ids = new Set<string>();
    let position = since;
    let looked = 0;
    let more = false;
    const after = since > 0n ? { commit: since, prepare: since } : undefined;
    await readUntil(this.#log, [table.prefix], after, (recorded) => {
      const id = table.idOf(recorded);
      const isNew = id !== undefined && !ids.has(id);
      looked += 1;
      more = (isNew && ids.size === limit) || looked > MOST_EVENTS;
      if (more) return false;
      if (id !== undefined) ids.add(id);
      position = recorded.position.commit;
      return true;
    });
    return { ids: [...ids], position, more };
  }
}
