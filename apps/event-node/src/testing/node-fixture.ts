import { EventStoreDBClient, jsonEvent, type JSONEventType } from '@eventstore/db-client';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEventNode, type EventNode, type EventNodeOptions } from '../node.js';

export type TestEvent = JSONEventType<string, Record<string, unknown>>;

export const event = (type = 'Tested', data: Record<string, unknown> = {}, id?: string) =>
  jsonEvent<TestEvent>({ type, data, ...(id === undefined ? {} : { id }) });

export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'event-node-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export interface TestNode {
  readonly node: EventNode;
  readonly dataDir: string;
  readonly client: EventStoreDBClient;
  stop(): Promise<void>;
}

/** A node in this process with a client to it; the pending appends of one client are all that a process may have. */
export async function startTestNode(options: Partial<EventNodeOptions> = {}): Promise<TestNode> {
  const folder = temporaryFolder();
  const dataDir = options.dataDir ?? folder.path;
  const node = await startEventNode({ port: 0, host: '127.0.0.1', insecure: true, ...options, dataDir });
  const client = connect(node.connectionString);
  return {
    node,
    dataDir,
    client,
    stop: async () => {
      await disposeWithin(client);
      await node.stop();
      folder.remove();
    },
  };
}

export const connect = (connectionString: string): EventStoreDBClient =>
  EventStoreDBClient.connectionString(connectionString);

/** The client's dispose can hang for ever after a read that was left early. */
export async function disposeWithin(client: EventStoreDBClient, ms = 2000): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    client.dispose(),
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    }),
  ]);
  clearTimeout(timer);
}

export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of source) all.push(item);
  return all;
}

/** Waits for a fact, looking again until the deadline. */
export async function eventually(fact: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const until = Date.now() + 45_000;
  while (!(await fact())) {
    if (Date.now() > until) throw new Error(`it never came true that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
