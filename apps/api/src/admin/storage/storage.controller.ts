import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import type { StorageReport } from '#domain/wire/index.js';
import { present } from '../views/present.js';
import type { ViewsDb } from '#schema/connect.js';
import { ViewsReader } from '../views/views-reader.js';

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
      return {
        drives: measured,
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
