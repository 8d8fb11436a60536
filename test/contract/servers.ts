import { EventStoreDBClient, jsonEvent, type JSONEventType } from '@eventstore/db-client';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { randomUUID } from 'node:crypto';
import { collect, disposeWithin, startTestNode } from '../../apps/event-node/src/testing/node-fixture.js';
import { rawRead } from '../../apps/event-node/src/testing/raw-client.js';

/** A server that the contract is held against. */
export interface Contender {
  readonly name: string;
  /** False for a server of somebody else's: what is set up or broken from outside is left out there, and said. */
  readonly embedded: boolean;
  start(): Promise<Running>;
}

export interface Running {
  readonly url: string;
  readonly client: EventStoreDBClient;
  /** Removes what retention hides; the embedded node only. */
  scavenge(): Promise<unknown>;
  /** The data of a stream's newest event as it stands on the wire; the embedded node only. */
  wireText(stream: string): Promise<string>;
  stop(): Promise<void>;
}

const embedded: Contender = {
  name: 'the embedded node',
  embedded: true,
  start: async () => {
    const { node, client, ...test } = await startTestNode();
    return {
      url: node.connectionString,
      client,
      scavenge: () => node.scavenge(),
      wireText: async (stream) => {
        const [newest] = await rawRead(node.port, newestOf(stream));
        return Buffer.from(newest?.getEvent()?.getEvent()?.getData_asU8() ?? []).toString('utf8');
      },
      stop: () => test.stop(),
    };
  },
};

/** The client's own reads make doubles of numbers that are none. */
function newestOf(stream: string): streamsPb.ReadReq.Options {
  const options = new streamsPb.ReadReq.Options();
  const of = new streamsPb.ReadReq.Options.StreamOptions();
  const id = new sharedPb.StreamIdentifier();
  id.setStreamName(Buffer.from(stream));
  of.setStreamIdentifier(id);
  of.setEnd(new sharedPb.Empty());
  options.setStream(of);
  options.setReadDirection(streamsPb.ReadReq.Options.ReadDirection.BACKWARDS);
  options.setCount('1');
  options.setNoFilter(new sharedPb.Empty());
  const uuid = new streamsPb.ReadReq.Options.UUIDOption();
  uuid.setString(new sharedPb.Empty());
  options.setUuidOption(uuid);
  return options;
}

const external = (url: string): Contender => ({
  name: 'the server at EVENTSTORE_URL',
  embedded: false,
  start: () => {
    const client = EventStoreDBClient.connectionString(url);
    return Promise.resolve({
      url,
      client,
      scavenge: () => Promise.reject(new Error('a real server is scavenged by its own schedule')),
      wireText: () => Promise.reject(new Error('the wire is looked at on the embedded node alone')),
      stop: () => disposeWithin(client),
    });
  },
});

const address = process.env['EVENTSTORE_URL'];

/** The embedded node always, and the server that EVENTSTORE_URL names. */
export const contenders: readonly Contender[] = address ? [embedded, external(address)] : [embedded];

/** False, and said aloud, where a test would have to configure or break a server that is not ours. */
export function onlyEmbedded({ name, embedded: ours }: Contender, what: string): boolean {
  if (!ours) {
    process.stderr.write(`SKIPPED on ${name}: ${what}. It is held against the embedded node alone.\n`);
  }
  return ours;
}

export type TestEvent = JSONEventType<string, Record<string, unknown>>;
export const event = (id?: string, data: Record<string, unknown> = {}) =>
  jsonEvent<TestEvent>({ type: 'ContractTested', data, ...(id === undefined ? {} : { id }) });

/** Of this run alone: a real server keeps what earlier runs have written. */
export const fresh = (category = 'contract'): string => `${category}-${randomUUID()}`;

/** The revisions that a reader sees, or the type of the error that it meets. */
export async function seen(client: EventStoreDBClient, stream: string): Promise<number[] | string> {
  try {
    return (await collect(client.readStream(stream))).map((e) => Number(e.event?.revision));
  } catch (error) {
    return (error as { type?: string }).type ?? String(error);
  }
}

/** How often a property is tried: FAST_CHECK_RUNS where it is set, within what a server and a CI can bear. */
export const runs = (usual: number, most: number): { readonly numRuns: number } => ({
  numRuns: Math.min(most, Number(process.env['FAST_CHECK_RUNS'] ?? usual)),
});
