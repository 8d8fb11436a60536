import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

interface Order {
  readonly run: string;
  readonly streams: number;
  readonly rounds: number;
  readonly inFlight: number;
}

/** Fights with others for the next revision of the same streams, and reports each attempt. */
const client = EventStoreDBClient.connectionString(process.argv[2] ?? '');

async function lastRevision(stream: string): Promise<number> {
  try {
    let last = -1;
    for await (const { event } of client.readStream(stream, {
      direction: 'backwards',
      fromRevision: 'end',
      maxCount: 1,
    })) {
      last = Number(event?.revision ?? -1);
    }
    return last;
  } catch (error) {
    if ((error as { type?: string }).type === 'stream-not-found') return -1;
    throw error;
  }
}

async function attempt(stream: string) {
  const expected = await lastRevision(stream);
  const event = jsonEvent({ type: 'Contended', data: { expected } });
  try {
    await client.appendToStream(stream, event, {
      expectedRevision: expected < 0 ? 'no_stream' : BigInt(expected),
    });
    return { id: event.id, stream, expected, won: true };
  } catch (error) {
    if ((error as { type?: string }).type !== 'wrong-expected-version') throw error;
    return { id: event.id, stream, expected, won: false };
  }
}

process.on('message', (order: Order) => {
  const round = async () => {
    const attempts = [];
    for (let i = 0; i < order.rounds; i++)
      attempts.push(await attempt(`fight-${order.run}_${i % order.streams}`));
    return attempts;
  };
  void Promise.all(Array.from({ length: order.inFlight }, round)).then((all) => process.send?.(all.flat()));
});
process.on('disconnect', () => process.exit(0));
