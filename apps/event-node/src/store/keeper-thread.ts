import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../errors.js';
import { openBeside } from './database.js';
import { runJob, type KeeperJob, type KeeperReply } from './keeper-jobs.js';

/** The thread behind `keeper.ts`: opens the log a second time and does what it is told. */
const { file } = workerData as { readonly file: string };
const db = openBeside(file);

const reply = (message: KeeperReply): void => parentPort?.postMessage(message);

parentPort?.on('message', (job: KeeperJob) => {
  try {
    reply({ kind: 'done', result: runJob(db, job, (message) => reply({ kind: 'progress', message })) });
  } catch (error) {
    reply({ kind: 'failed', message: messageOf(error) });
  }
});
