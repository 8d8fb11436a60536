import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createPrivateFile, makePrivateFolder } from '../access/private-files.js';
import { query, type Sqlite } from './database.js';

export interface BackupReport {
  readonly file: string;
  readonly bytes: number;
  /** The position of the newest event in the copy, -1 when there is none. */
  readonly endPosition: number;
}

/**
 * Copies the log as it stands at one moment into `folder`, while appends go on. The copy is whole or not there: it is
 * written beside, synced and renamed.
 */
export function backupTo(db: Sqlite, folder: string): BackupReport {
  makePrivateFolder(folder);
  const file = join(folder, 'log.db');
  if (existsSync(file)) {
    throw new Error(`There is a backup in ${folder} already. Name another folder, or move that one away.`);
  }
  const beside = `${file}.new`;
  rmSync(beside, { force: true });
  createPrivateFile(beside);
  db.exec(`vacuum into '${beside.replaceAll("'", "''")}'`);
  const handle = openSync(beside, 'r+');
  fsyncSync(handle);
  closeSync(handle);
  db.exec(`attach '${beside.replaceAll("'", "''")}' as copy`);
  const end = query<[number | null]>(db, 'select max(position) from copy.events').get([])?.[0] ?? -1;
  db.exec('detach copy');
  renameSync(beside, file);
  return { file, bytes: statSync(file).size, endPosition: end };
}
