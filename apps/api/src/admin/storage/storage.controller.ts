import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import type { DeviceId } from '#domain/ids.js';
import type { ModelFolder, StorageReport } from '#domain/wire/index.js';
import { diskLimitOf, diskRoom } from '#domain/worker/disk-limit.js';
import { present } from '../views/present.js';
import type { ViewsDb } from '#schema/connect.js';
import { ViewsReader } from '../views/views-reader.js';
import type { Limits } from '../workers/worker.view.js';

/** Largest first. */
export const storedArtifacts = (db: ViewsDb) =>
  db
    .selectFrom('stored_artifacts')
    .selectAll()
    .orderBy('bytes', 'desc')
    .orderBy('model_key')
    .orderBy('artifact');

export const drives = (db: ViewsDb) =>
  db.selectFrom('storage_drives').selectAll().orderBy('worker_id').orderBy('mount');

export const folders = (db: ViewsDb) =>
  db
    .selectFrom('workers')
    .select(['worker_id', 'name', 'limits', 'drives', 'changed_at'])
    .orderBy('worker_id');

type FolderRow = Awaited<ReturnType<ReturnType<typeof folders>['execute']>>[number];

export function folderView(row: FolderRow, usedBytes: number): ModelFolder {
  const limits = row.limits as Limits;
  const tier = (of: keyof Limits) => new Map(Object.entries(limits[of]) as [DeviceId, number][]);
  const limit = diskLimitOf({ designation: tier('designation'), setting: tier('setting') });
  // The agent names the drive of this folder first.
  const drive = (row.drives as readonly { totalBytes: number; freeBytes: number }[] | null)?.[0];
  return present({
    workerId: row.worker_id,
    workerName: row.name,
    usedBytes,
    limitBytes: limit?.bytes,
    limitTier: limit?.tier,
    driveBytes: drive?.totalBytes,
    freeBytes: drive?.freeBytes,
    measuredAt: drive && row.changed_at,
    roomBytes: diskRoom(limit, usedBytes, drive?.freeBytes),
  });
}

@Injectable()
export class StorageRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  read(): Promise<StorageReport> {
    return this.#views.read(async (db) => {
      const artifacts = (await storedArtifacts(db).execute()).map((row) => ({
        workerId: row.worker_id ?? '',
        modelKey: row.model_key ?? '',
        artifact: row.artifact ?? '',
        root: row.root ?? '',
        path: row.path ?? '',
        bytes: row.bytes ?? 0,
        complete: row.complete ?? false,
        ...present({ broken: row.broken }),
      }));
      const measured = (await drives(db).execute()).map((row) => ({
        workerId: row.worker_id ?? '',
        mount: row.mount ?? '',
        totalBytes: row.total_bytes ?? 0,
        freeBytes: row.free_bytes ?? 0,
        measuredAt: row.changed_at ?? '',
      }));
      const used = (workerId: string) =>
        artifacts
          .filter((artifact) => artifact.workerId === workerId && artifact.root === 'models')
          .reduce((sum, { bytes }) => sum + bytes, 0);
      return {
        drives: measured,
        folders: (await folders(db).execute()).map((row) => folderView(row, used(row.worker_id))),
        artifacts,
        totalBytes: artifacts.reduce((sum, { bytes }) => sum + bytes, 0),
      };
    });
  }
}

@Controller('admin/storage')
export class StorageController {
  readonly #storage: StorageRepository;

  constructor(@Inject(StorageRepository) storage: StorageRepository) {
    this.#storage = storage;
  }

  @Get()
  storage(): Promise<StorageReport> {
    return this.#storage.read();
  }
}
