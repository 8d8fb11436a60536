import {
  type CallOptions,
  Channel,
  type ClientDuplexStream,
  credentials as grpcCredentials,
  Metadata,
} from '@grpc/grpc-js';
import { EventStoreDBClient } from '@eventstore/db-client';
import { parseConnectionString } from '@eventstore/db-client/dist/Client/parseConnectionString.js';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { checkServerIdentity } from 'node:tls';
import { type BatchAnswer, batchAnswer } from './batch-answer.js';
import { readMessage } from './read-message.js';

export type BatchCall = ClientDuplexStream<Buffer, BatchAnswer>;

const READ = '/event_store.client.streams.Streams/Read';
const BATCH_APPEND = '/event_store.client.streams.Streams/BatchAppend';
/** How long a connection may leave a ping unanswered before it counts as dead. */
const PING_TIMEOUT_MS = 5000;
/** Most that a connection waits between two tries to come about. */
const RECONNECT_WITHIN_MS = 2000;
const DISPOSE_WITHIN_MS = 1000;
/** How far a server may send ahead; HTTP/2's own 64 KiB are a few dozen events. */
const RECEIVE_WINDOW_BYTES = 1024 * 1024;
/**
 * TLS names a server only by a host name. The library would send an address as one, which servers need not take and
 * Node warns of; so a server that is known by its address is asked for by this, and its certificate held against the
 * address all the same.
 */
const UNNAMED_SERVER = 'localhost';

/**
 * The client with its connection, reconnection and credentials, plus a batch call of our own. The client's own
 * appends share one table of pending answers among all clients of the process: when one connection breaks, the
 * appends of all fail, and an answer that comes for one of them afterwards throws inside a data handler, which ends
 * the process. Nor has its batch append a deadline.
 */
export class LogClient extends EventStoreDBClient {
  readonly #calls = new WeakMap<StreamsClient, BatchCall>();
  #openCall: BatchCall | undefined;
  #connected = false;

  static open(url: string): LogClient {
    const o = parseConnectionString(url);
    const [host] = o.hosts;
    if (!host) throw new Error(`The event log's address names no host: ${withoutPassword(url)}`);
    const common = defined({
      throwOnAppendFailure: true,
      keepAliveInterval: o.keepAliveInterval,
      keepAliveTimeout: url.includes('keepAliveTimeout') ? o.keepAliveTimeout : PING_TIMEOUT_MS,
      defaultDeadline: o.defaultDeadline,
      connectionName: o.connectionName,
    });
    const discovery = defined({
      nodePreference: o.nodePreference,
      discoveryInterval: o.discoveryInterval,
      gossipTimeout: o.gossipTimeout,
      maxDiscoverAttempts: o.maxDiscoverAttempts,
    });
    const channel = defined({
      insecure: o.tls === false,
      rootCertificate: fileOf(o.tls === false ? undefined : o.tlsCAFile),
      userCertFile: fileOf(o.userCertFile),
      userKeyFile: fileOf(o.userKeyFile),
    });
    const credentials = o.defaultCredentials;
    const client = o.dnsDiscover
      ? new LogClient({ ...common, ...discovery, discover: host }, channel, credentials)
      : o.hosts.length > 1
        ? new LogClient({ ...common, ...discovery, endpoints: o.hosts }, channel, credentials)
        : new LogClient({ ...common, endpoint: host }, channel, credentials);
    // Called without a catch when a call breaks: a failed discovery in it would be an unhandled rejection.
    const handleError = client.handleError;
    client.handleError = (failed, error) => handleError(failed, error).catch(() => undefined);
    const secrets = (address: string | undefined) =>
      o.tls === false
        ? grpcCredentials.createInsecure()
        : grpcCredentials.createSsl(
            channel.rootCertificate,
            channel.userKeyFile,
            channel.userCertFile,
            address === undefined
              ? {}
              : { checkServerIdentity: (_name, cert) => checkServerIdentity(address, cert) },
          );
    const channelOptions = {
      'grpc.keepalive_time_ms': timeOrNever(common.keepAliveInterval ?? 10_000),
      'grpc.keepalive_timeout_ms': timeOrNever(common.keepAliveTimeout ?? PING_TIMEOUT_MS),
      'grpc.max_receive_message_length': 17 * 1024 * 1024,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': RECONNECT_WITHIN_MS,
      // What is tried again is decided here, with ids; the library would keep a copy of every message for it.
      'grpc.enable_retries': 0,
      'grpc-node.flow_control_window': RECEIVE_WINDOW_BYTES,
    };
    // The client's own channel waits up to two minutes before it dials a server again that was away for long.
    client['createChannel'] = async () => {
      const uri = await client.resolveUri();
      const address = ipAddressOf(uri);
      const serverName = address === undefined ? {} : { 'grpc.ssl_target_name_override': UNNAMED_SERVER };
      return new Channel(uri, secrets(address), { ...channelOptions, ...serverName });
    };
    const createClient = client['createGRPCClient'] as (kind: unknown) => Promise<unknown>;
    client['createGRPCClient'] = async (kind: unknown) => {
      const made = await createClient(kind);
      if (made instanceof StreamsClient) decodeByHand(made);
      return made;
    };
    return client;
  }

  /** The batch call that is open, if there is one; else ask `batchCall`. */
  currentBatchCall(): BatchCall | undefined {
    const call = this.#openCall;
    return call && !call.destroyed && !call.writableEnded ? call : undefined;
  }

  /**
   * The open batch call, or a new one; `onOpen` is called once for a new one, before anything is written to it.
   * Messages are bytes that the caller has serialised.
   */
  async batchCall(onOpen: (call: BatchCall) => void): Promise<BatchCall> {
    this.#connected = true;
    return this.GRPCStreamCreator(
      StreamsClient,
      'batchAppend',
      (client) => {
        const [metadata, options] = this.callArguments({ requiresLeader: true }, { deadline: Infinity });
        const call = client.makeBidiStreamRequest<Buffer, BatchAnswer>(
          BATCH_APPEND,
          (bytes) => bytes,
          batchAnswer,
          metadata,
          options,
        );
        const over = () => {
          if (this.#openCall === call) this.#openCall = undefined;
        };
        call.on('error', over).on('end', over).on('close', over);
        onOpen(call);
        this.#openCall = call;
        return call;
      },
      this.#calls,
    )();
  }

  /** Marks that a connection was opened, so that closing has something to close. */
  touch(): this {
    this.#connected = true;
    return this;
  }

  /** Ends every call and the connection. The client's `dispose` can wait for ever: it gets a second. */
  async shutDown(): Promise<void> {
    if (!this.#connected) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((done) => (timer = setTimeout(done, DISPOSE_WITHIN_MS)));
    await Promise.race([this.dispose().catch(() => undefined), late]);
    const channel = await Promise.race([this.getChannel().catch(() => undefined), late]);
    if (channel) channel.close();
    clearTimeout(timer);
  }
}

/** The client makes its reads through this method; what comes back it only asks for its fields. */
function decodeByHand(client: StreamsClient): void {
  const read = (request: streamsPb.ReadReq, metadata?: Metadata | null, options?: Partial<CallOptions>) =>
    client.makeServerStreamRequest(
      READ,
      (message: streamsPb.ReadReq) => Buffer.from(message.serializeBinary()),
      readMessage as (bytes: Buffer) => streamsPb.ReadResp,
      request,
      metadata ?? new Metadata(),
      options,
    );
  client.read = read as StreamsClient['read'];
}

/** Undefined where the server is named. */
function ipAddressOf(uri: string): string | undefined {
  const host = uri.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? undefined : host;
}

const timeOrNever = (ms: number): number => (ms < 0 ? Number.MAX_VALUE : ms);

const fileOf = (path: string | undefined): Buffer | undefined =>
  path === undefined ? undefined : readFileSync(resolve(path));

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Leaves out what is undefined, so that the client's own defaults stand. */
function defined<T extends object>(options: T): Partial<Defined<T>> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<
    Defined<T>
  >;
}

const withoutPassword = (url: string): string => url.replace(/\/\/[^@/]*@/, '//…@');
