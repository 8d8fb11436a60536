import { copyFileSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { createPrivateFile } from '../access/private-files.js';
import { StartError } from '../errors.js';
import { change, openDatabase, query } from './database.js';
import { logFile } from './open-log.js';
import { IDENTITY_STREAM } from './salvage.js';

/**
 * Puts a backup in the place of a log. It becomes another log to its readers (its identity is left out): positions behind
 * the backup will be given again, and a checkpoint from before must not be believed.
 */
export function restoreLog(backupFolder: string, dataDir: string): { readonly events: number } {
  const from = join(backupFolder, 'log.db');
  const to = logFile(dataDir);
  if (!existsSync(from)) throw new StartError(`There is no backup in ${backupFolder}: log.db is missing.`);
  if (existsSync(to)) {
    throw new StartError(
      `There is a log in ${dataDir} already. Move ${to} away first if it is to be replaced.`,
    );
  }
  const beside = `${to}.restore`;
  createPrivateFile(beside);
  copyFileSync(from, beside);
  const db = openDatabase(beside);
  let events: number;
  try {
    db.exec('begin immediate');
    change(db, 'delete from events where sid = (select sid from streams where name = ?)').run([
      IDENTITY_STREAM,
    ]);
    change(db, 'delete from streams where name = ?').run([IDENTITY_STREAM]);
    db.exec('commit');
    [events = 0] = query<[number]>(db, 'select count(*) from events').get([]) ?? [];
    query(db, 'pragma wal_checkpoint(truncate)').all([]);
  } finally {
    db.close();
  }
  renameSync(beside, to);
  return { events };
}
