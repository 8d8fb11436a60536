import { Inject, Injectable } from '@nestjs/common';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodeCursor } from '../paging/page.js';
import type { ListQuery } from '../paging/list-query.dto.js';
import { ViewsReader } from '../views/views-reader.js';

export const workersPage = (db: ViewsDb, query: ListQuery) => {
  let rows = db.selectFrom('workers').selectAll();
  if (query.after !== undefined) rows = rows.where('worker_id', '>', decodeCursor(query.after, 1)[0] ?? '');
  return rows.orderBy('worker_id').limit(query.limit + 1);
};

export const devicesOf = (db: ViewsDb, workerIds: readonly string[]) =>
  db
    .selectFrom('devices')
    .selectAll()
    .where('worker_id', 'in', workerIds)
    .where('present', '=', true)
    .orderBy('worker_id')
    .orderBy('ordinal');

/** What residents hold on each device: as measured, or as planned while they load. */
export const heldMemory = (db: ViewsDb, workerIds: readonly string[]) =>
  db
    .selectFrom('residents')
    .select(['worker_id', 'predicted_memory', 'measured_memory'])
    .where('worker_id', 'in', workerIds)
    .where('phase', '<>', 'ended');

export type WorkerRow = DB['workers'];
export type DeviceRow = DB['devices'];
export type HeldRow = Pick<DB['residents'], 'worker_id' | 'predicted_memory' | 'measured_memory'>;

export interface WorkersAndDevices {
  readonly workers: readonly WorkerRow[];
  readonly devices: readonly DeviceRow[];
  readonly held: readonly HeldRow[];
}

@Injectable()
export class WorkersRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: ListQuery): Promise<WorkersAndDevices> {
    return this.#views.read(async (db) => {
      const workers = await workersPage(db, query).execute();
      const ids = workers.map((worker) => worker.worker_id);
      if (ids.length === 0) return { workers, devices: [], held: [] };
      const [devices, held] = await Promise.all([
        devicesOf(db, ids).execute(),
        heldMemory(db, ids).execute(),
      ]);
      return { workers, devices, held };
    });
  }
}
