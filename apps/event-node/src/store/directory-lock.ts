import Database from 'libsql';
import { join } from 'node:path';
import { createPrivateFile } from '../access/private-files.js';
import { StartError } from '../errors.js';

/**
 * Holds a data folder for one process. The lock is SQLite's on a file of its own: the kernel lets go of it when the
 * process dies, so a crash leaves no stale lock, and the log itself stays open to a second connection for backups.
 */
export class DirectoryLock {
  private constructor(private readonly db: InstanceType<typeof Database>) {}

  static take(dataDir: string): DirectoryLock {
    const file = join(dataDir, 'lock');
    createPrivateFile(file);
    const db = new Database(file);
    try {
      db.exec('pragma busy_timeout = 0; begin exclusive');
      return new DirectoryLock(db);
    } catch (error) {
      db.close();
      if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') {
        throw new DirectoryInUse(dataDir);
      }
      throw error;
    }
  }

  release(): void {
    this.db.exec('rollback');
    this.db.close();
  }
}

export class DirectoryInUse extends StartError {
  constructor(dataDir: string) {
    super(
      `Another event node is running on ${dataDir}: two would damage the log. Stop it first, or give this one a folder of its own with --data.`,
    );
  }
}
