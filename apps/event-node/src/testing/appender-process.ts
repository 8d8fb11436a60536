import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

/**
 * Appends without pause from a process of its own and reports each acknowledged event to its parent: the client's
 * pending appends are shared by all clients of a process, so a test that breaks connections keeps them out of its own.
 */
const [url = '', stream = '', inFlight = '8'] = process.argv.slice(2);
const client = EventStoreDBClient.connectionString(url);

async function writer(index: number): Promise<void> {
  for (let n = 0; ; n++) {
    const event = jsonEvent({ type: 'Kept', data: { index, n, pad: 'k'.repeat(400) } });
    const { nextExpectedRevision } = await client.appendToStream(`${stream}_${index}`, event);
    process.send?.({ id: event.id, stream: `${stream}_${index}`, revision: Number(nextExpectedRevision) });
  }
}

// The node is killed under it: whatever breaks then is the end of this process, and no failure.
process.on('uncaughtException', () => process.exit(0));
Promise.all(Array.from({ length: Number(inFlight) }, (_, index) => writer(index))).catch(() =>
  process.exit(0),
);
