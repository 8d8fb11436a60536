import { END, EventStoreDBClient, jsonEvent, START, streamNameFilter } from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import type { BerthEvent } from '#domain/events/index.js';
import { openEventLog } from '#events/connect.js';
import { SAMPLES } from '#events/testing/samples.js';

/** The end of a call with all its stamps, about 1.1 KB: what a busy log holds most of. */
const data = { ...SAMPLES.CallFinished, code: 'x'.repeat(220) };

/** One way to use a log; both go through the same client library. */
export interface Subject {
  readonly name: string;
  append(stream: string, ids: readonly string[]): Promise<void>;
  /** Follows the whole log from its start until everything, or so many, is read; answers how many events came. */
  catchUp(most?: number): Promise<number>;
  /** Calls back with the id of each new event of streams with that prefix, until told to stop. */
  follow(prefix: string, onEvent: (id: string) => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** `@eventstore/db-client` as its manual says. */
export function plainClient(url: string): Subject {
  const client = EventStoreDBClient.connectionString(url);
  const make = (id: string) =>
    jsonEvent({
      id,
      type: 'CallFinished',
      data,
      metadata: {
        $correlationId: id,
        $causationId: id,
        at: new Date().toISOString(),
        by: 'bench',
        schemaVersion: 1,
      },
    });
  return {
    name: 'the client',
    append: async (stream, ids) => {
      await client.appendToStream(stream, ids.map(make));
    },
    catchUp: async (most = Infinity) => {
      const subscription = client.subscribeToAll({ fromPosition: START });
      let events = 0;
      await new Promise<void>((resolve, reject) => {
        subscription.on('data', () => {
          if (++events >= most) resolve();
        });
        subscription.on('caughtUp', resolve);
        subscription.on('error', reject);
      });
      await subscription.unsubscribe();
      return events;
    },
    follow: async (prefix, onEvent) => {
      const subscription = client.subscribeToAll({
        fromPosition: END,
        filter: streamNameFilter({ prefixes: [prefix] }),
      });
      await new Promise<void>((resolve, reject) => {
        subscription.on('caughtUp', resolve);
        subscription.on('error', reject);
      });
      subscription.on('data', ({ event }) => event && onEvent(event.id));
      return () => subscription.unsubscribe();
    },
    close: async () => {
      await Promise.race([client.dispose(), new Promise((resolve) => setTimeout(resolve, 1000))]);
    },
  };
}

/** The same client as Berth uses it: typed events, own deadlines, resuming subscriptions. */
export function berthLog(url: string): Subject {
  const log = openEventLog({ url, by: 'bench', now: Date.now });
  const make = (id: string) => ({
    id,
    event: { type: 'CallFinished', data } as BerthEvent,
    cause: { correlationId: id, causationId: id },
  });
  /** Settles when everything is read, or `onEvent` answers that it is enough. */
  const caughtUp = (prefixes: readonly string[], onEvent: (id: string) => boolean, fromEnd: boolean) =>
    new Promise<() => Promise<void>>((resolve, reject) => {
      void (fromEnd ? log.endPosition() : Promise.resolve(undefined)).then((after) => {
        const done = () => resolve(() => subscription.stop());
        const subscription = log.subscribeAll(
          prefixes,
          {
            onEvent: (recorded) => {
              if (onEvent(recorded.id)) done();
            },
            onCaughtUp: done,
          },
          after ? { after } : {},
        );
        subscription.ended.catch(reject);
      }, reject);
    });
  return {
    name: 'libs/events',
    append: async (stream, ids) => {
      const outcome = await log.append(stream, ids.map(make), 'any');
      if (!outcome.ok) throw new Error(`the append failed: ${JSON.stringify(outcome.error)}`);
    },
    catchUp: async (most = Infinity) => {
      let events = 0;
      const stop = await caughtUp([], () => ++events >= most, false);
      await stop();
      return events;
    },
    follow: (prefix, onEvent) =>
      caughtUp(
        [prefix],
        (id) => {
          onEvent(id);
          return false;
        },
        true,
      ),
    close: () => log.close(),
  };
}

export const newIds = (count: number): string[] => Array.from({ length: count }, () => randomUUID());
