import Database from 'libsql';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../errors.js';
import { runJob, type KeeperJob, type KeeperReply } from './keeper-jobs.js';

/** The thread behind `keeper.ts`: opens the log a second time and does what it is told. */
const { file } = workerData as { readonly file: string };
const db = new Database(file);
db.exec('pragma busy_timeout = 10000; pragma synchronous = full; pragma wal_autocheckpoint = 0');

const reply = (message: KeeperReply): void => parentPort?.postMessage(message);

parentPort?.on('message', (job: KeeperJob) => {
  try {
    reply({ kind: 'done', result: runJob(db, job, (message) => reply({ kind: 'progress', message })) });
  } catch (error) {
    reply({ kind: 'failed', message: messageOf(error) });
  }
});
