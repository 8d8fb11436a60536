import { backupTo } from './backup.js';
import { query, type Sqlite } from './database.js';
import { verifyLog } from './verify.js';

export type KeeperJob =
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'verify' }
  | { readonly kind: 'backup'; readonly folder: string };

export type KeeperReply =
  | { readonly kind: 'progress'; readonly message: string }
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly message: string };

/** What is done on a second connection, beside the one that commits. */
export function runJob(db: Sqlite, job: KeeperJob, progress: (message: string) => void): unknown {
  switch (job.kind) {
    case 'checkpoint':
      // Passive: copies what it can and never makes a commit wait.
      return query(db, 'pragma wal_checkpoint(passive)').all([]);
    case 'verify':
      return verifyLog(db, progress);
    case 'backup':
      return backupTo(db, job.folder);
  }
}
