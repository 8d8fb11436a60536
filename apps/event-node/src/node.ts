import { isIP } from 'node:net';
import { join } from 'node:path';
import { ensureCertificates, type TlsFiles } from './access/certificates.js';
import { ADMIN, connectionFile, ensureCredentials } from './access/credentials.js';
import { makePrivateFolder, writePrivateFile } from './access/private-files.js';
import { Rights } from './access/rights.js';
import { ROLES } from './access/roles.js';
import { Users, type UserSecret } from './access/users.js';
import { messageOf, NodeError, StartError } from './errors.js';
import { httpHandler } from './http.js';
import { Listener } from './listener.js';
import { OpenCalls, type NodeContext } from './services/context.js';
import { createGrpcServer } from './services/services.js';
import { DirectoryLock } from './store/directory-lock.js';
import type { BackupReport } from './store/backup.js';
import type { Sqlite } from './store/database.js';
import type { EventStore } from './store/event-store.js';
import type { ScavengeReport } from './store/scavenger.js';
import type { VerifyReport } from './store/verify.js';
import { openLog } from './store/open-log.js';

export interface EventNodeOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly host: string;
  readonly insecure: boolean;
  /** Something a person should know; by default it is dropped. */
  readonly say?: (message: string) => void;
  /** The file turned out to be damaged in use: end the process, the next start sets the file aside. */
  readonly onDamage?: (error: unknown) => void;
  readonly now?: () => number;
}

export interface EventNode {
  readonly port: number;
  /** With the administrator's credential. */
  readonly connectionString: string;
  /** A 0600 file that holds the connection string. */
  readonly connectionFile: string;
  /** The same without the credential. */
  readonly publicAddress: string;
  /** The open file; for tests that make the disk fail. */
  readonly database: Sqlite;
  /** Removes what retention hides. */
  scavenge(): Promise<ScavengeReport>;
  verify(): Promise<VerifyReport>;
  /** Copies the log into a folder while it is in use. */
  backup(folder: string): Promise<BackupReport>;
  stop(): Promise<void>;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);
const STOP_GRACE_MS = 2000;
const SCAVENGE_EVERY_MS = 30 * 60 * 1000;
const RENEWAL_CHECK_MS = 12 * 60 * 60 * 1000;

/** Starts the embedded event log on a data folder. */
export async function startEventNode(options: EventNodeOptions): Promise<EventNode> {
  const { dataDir, host, insecure } = options;
  if (insecure && !LOOPBACK.has(host)) {
    throw new StartError(
      `--insecure serves without TLS and passwords, which is for loopback only; ${host} is not. Leave --insecure out, or the host.`,
    );
  }
  makePrivateFolder(dataDir);
  const lock = DirectoryLock.take(dataDir);
  try {
    return await startLocked(options, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startLocked(options: EventNodeOptions, lock: DirectoryLock): Promise<EventNode> {
  const { dataDir, host, insecure } = options;
  const now = options.now ?? Date.now;
  const say = options.say ?? (() => undefined);
  const store = openLog(dataDir, { onDamage: options.onDamage ?? (() => undefined), say, now });
  try {
    const tls = insecure ? undefined : await ensureCertificates(join(dataDir, 'tls'), host);
    const credentials = insecure ? undefined : ensureCredentials(dataDir);
    const context: NodeContext = {
      store,
      users: new Users(credentials),
      rights: new Rights(store.states),
      calls: new OpenCalls(),
      now,
    };
    const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
    let port = options.port;
    const grpc = createGrpcServer(context, () => ({ host: reachable, port }));
    const listener = await Listener.start(
      { host, port: options.port, tls },
      grpc,
      httpHandler(context, !insecure),
    );
    port = listener.port;
    const renewal = tls && renewInTime(tls, join(dataDir, 'tls'), host, listener, say);
    const address = `${isIP(reachable) === 6 ? `[${reachable}]` : reachable}:${port}`;
    const connectionOf = (name: string) =>
      connectionTo(
        address,
        tls,
        credentials?.find((user) => user.name === name),
      );
    for (const name of [ADMIN, ...ROLES]) {
      writePrivateFile(connectionFile(dataDir, name), `${connectionOf(name)}\n`);
    }
    const scavenging = scavengeByItself(store, say);
    return {
      port,
      connectionString: connectionOf(ADMIN),
      connectionFile: connectionFile(dataDir, ADMIN),
      publicAddress: connectionTo(address, tls, undefined),
      database: store.db,
      scavenge: () => store.scavenge(),
      verify: () => store.verify(),
      backup: (folder) => store.backup(folder),
      stop: async () => {
        clearInterval(renewal);
        clearInterval(scavenging);
        context.calls.refuseNew();
        // What was taken is committed and answered before the calls that carry the answers end.
        await store.drain();
        context.calls.endAll(new NodeError({ code: 'cancelled' }, 'The node is stopping.'));
        await listener.close(STOP_GRACE_MS);
        await store.close();
        lock.release();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

function connectionTo(address: string, tls: TlsFiles | undefined, user: UserSecret | undefined): string {
  if (!tls) return `esdb://${address}?tls=false`;
  const credential = user ? `${user.name}:${user.secret}@` : '';
  return `esdb://${credential}${address}?tls=true&tlsCAFile=${encodeURIComponent(tls.caFile)}`;
}

/** What `$maxAge` and its kin hide leaves the disk without anybody asking. */
function scavengeByItself(store: EventStore, say: (message: string) => void): NodeJS.Timeout {
  const timer = setInterval(() => {
    store.scavenge().catch((error: unknown) => say(`the scavenge stopped: ${messageOf(error)}`));
  }, SCAVENGE_EVERY_MS);
  timer.unref();
  return timer;
}

/** A node that runs for a year must not find its certificate expired. */
function renewInTime(
  tls: TlsFiles,
  folder: string,
  host: string,
  listener: Listener,
  say: (message: string) => void,
): NodeJS.Timeout {
  let current = tls.cert;
  const renew = async () => {
    const files = await ensureCertificates(folder, host);
    if (files.cert === current) return;
    current = files.cert;
    listener.renew(files);
  };
  const timer = setInterval(() => {
    renew().catch((error: unknown) =>
      say(`the certificate could not be looked after (${messageOf(error)}); it is tried again later.`),
    );
  }, RENEWAL_CHECK_MS);
  timer.unref();
  return timer;
}
