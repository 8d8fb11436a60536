import { existsSync, readFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { resolve } from 'node:path';
import { ADMIN, connectionFile } from './access/credentials.js';
import { makePrivateFolder } from './access/private-files.js';
import { StartError } from './errors.js';
import type { BackupReport } from './store/backup.js';
import { DirectoryInUse, DirectoryLock } from './store/directory-lock.js';
import type { EventStore } from './store/event-store.js';
import { logFile, openLog } from './store/open-log.js';
import { restoreLog } from './store/restore.js';
import type { ScavengeReport } from './store/scavenger.js';
import type { VerifyReport } from './store/verify.js';

export type { BackupReport, ScavengeReport, VerifyReport };
export type Say = (message: string) => void;

/** Each works on a data folder, whether a node runs on it (then that one does it) or not. */

export const backup = (dataDir: string, folder: string, say: Say = drop): Promise<BackupReport> =>
  onLog(dataDir, say, (store) => store.backup(resolve(folder)), ['backup', { folder: resolve(folder) }]);

export const verify = (dataDir: string, say: Say = drop): Promise<VerifyReport> =>
  onLog(dataDir, say, (store) => store.verify(), ['verify', {}]);

export const scavenge = (dataDir: string, say: Say = drop): Promise<ScavengeReport> =>
  onLog(dataDir, say, (store) => store.scavenge(), ['scavenge', {}]);

/** Only while no node runs on the folder, and only where no log is. */
export function restore(backupFolder: string, dataDir: string): { readonly events: number } {
  makePrivateFolder(dataDir);
  const lock = DirectoryLock.take(dataDir);
  try {
    return restoreLog(backupFolder, dataDir);
  } finally {
    lock.release();
  }
}

const drop: Say = () => undefined;

async function onLog<T>(
  dataDir: string,
  say: Say,
  here: (store: EventStore) => Promise<T>,
  [task, body]: readonly [string, object],
): Promise<T> {
  if (!existsSync(logFile(dataDir))) throw new StartError(`There is no event log in ${dataDir}.`);
  let lock: DirectoryLock;
  try {
    lock = DirectoryLock.take(dataDir);
  } catch (error) {
    if (error instanceof DirectoryInUse) return (await askNode(dataDir, task, body)) as T;
    throw error;
  }
  try {
    const store = openLog(dataDir, { say, onDamage: () => undefined, now: Date.now });
    try {
      return await here(store);
    } finally {
      await store.close();
    }
  } finally {
    lock.release();
  }
}

/** The node that runs on the folder does it; its address and credential lie in the folder. */
async function askNode(dataDir: string, task: string, body: object): Promise<unknown> {
  const url = new URL(
    readFileSync(connectionFile(dataDir, ADMIN), 'utf8')
      .trim()
      .replace(/^esdb:/, 'http:'),
  );
  const caFile = url.searchParams.get('tlsCAFile');
  const text = JSON.stringify(body);
  const options = {
    method: 'POST',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port,
    path: `/admin/${task}`,
    agent: false,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
    ...(url.username ? { auth: `${url.username}:${url.password}` } : {}),
    ...(caFile === null ? {} : { ca: readFileSync(caFile) }),
  };
  return new Promise((done, reject) => {
    const call = (caFile === null ? plainRequest : tlsRequest)(options, (response) => {
      let answer = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (answer += chunk));
      response.on('error', reject);
      response.on('end', () => {
        const report = JSON.parse(answer) as { error?: string };
        if (response.statusCode === 200) done(report);
        else reject(new StartError(report.error ?? `The node answered ${response.statusCode}.`));
      });
    });
    call.on('error', (error) =>
      reject(new StartError(`The node on ${dataDir} does not answer: ${error.message}`)),
    );
    call.end(text);
  });
}
