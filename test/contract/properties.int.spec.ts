import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fork, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { START } from '@eventstore/db-client';
import {
  collect,
  connect,
  disposeWithin,
  eventually,
  startTestNode,
  temporaryFolder,
} from '../../apps/event-node/src/testing/node-fixture.js';
import { killLeftovers, startNodeProcess, track } from '../../apps/event-node/src/testing/node-process.js';
import { contenders, onlyEmbedded, type Running, runs } from './servers.js';

const childFile = (name: string) =>
  fileURLToPath(new URL(`../../dist/apps/event-node/src/testing/${name}.js`, import.meta.url));

interface Attempt {
  readonly id: string;
  readonly stream: string;
  readonly expected: number;
  readonly won: boolean;
}
interface Acknowledged {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
}

const ask = (child: ChildProcess, order: object): Promise<Attempt[]> =>
  new Promise((resolve) => {
    child.once('message', (attempts) => resolve(attempts as Attempt[]));
    child.send(order);
  });

for (const contender of contenders) {
  describe(contender.name, () => {
    let running: Running;
    /** In processes of their own: the client keeps its pending appends in one table per process. */
    let writers: ChildProcess[] = [];
    beforeAll(async () => {
      running = await contender.start();
      writers = Array.from({ length: 3 }, () =>
        track(
          fork(childFile('contender-process'), [running.url], {
            stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
            execArgv: [],
          }),
        ),
      );
    });
    afterAll(async () => {
      killLeftovers();
      await running.stop();
    });

    test('of several clients that append at one revision exactly one wins, however they interleave', async () => {
      const plan = fc.record({
        streams: fc.integer({ min: 1, max: 3 }),
        rounds: fc.integer({ min: 2, max: 6 }),
        inFlight: fc.integer({ min: 1, max: 8 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(plan, { minLength: 3, maxLength: 3 }), async (plans) => {
          const run = randomUUID();
          const results = await Promise.all(writers.map((child, i) => ask(child, { run, ...plans[i] })));
          const attempts = results.flat();
          const winners = attempts.filter((attempt) => attempt.won);
          const places = winners.map(({ stream, expected }) => `${stream}@${expected}`);
          expect(new Set(places).size).toBe(places.length);
          for (const stream of new Set(attempts.map((attempt) => attempt.stream))) {
            const events = await collect(running.client.readStream(stream));
            const won = new Map(
              winners.filter((w) => w.stream === stream).map((w) => [w.expected + 1, w.id]),
            );
            expect(events.map((e) => e.event?.id)).toEqual(events.map((_, revision) => won.get(revision)));
            expect(won.size).toBe(events.length);
          }
        }),
        runs(12, 25),
      );
    });

    test('$all is one strict order, in which every stream counts up and nothing comes twice', async () => {
      const last = new Map<string, bigint>();
      let place = -1n;
      for await (const { event: e } of running.client.readAll({ fromPosition: START })) {
        if (!e) throw new Error('an event is missing');
        expect(e.position.commit).toBeGreaterThan(place);
        place = e.position.commit;
        const before = last.get(e.streamId);
        // On a server that was scavenged a stream may begin late or have gaps; it never goes back.
        if (contender.embedded) expect(e.revision).toBe((before ?? -1n) + 1n);
        else expect(e.revision).toBeGreaterThan(before ?? -1n);
        last.set(e.streamId, e.revision);
      }
    });

    test.runIf(onlyEmbedded(contender, 'kill points'))(
      'killed at any moment under load, nothing acknowledged is lost and no stream is torn',
      { timeout: 300_000 },
      async () => {
        const folder = temporaryFolder();
        const acknowledged: Acknowledged[] = [];
        await fc.assert(
          fc.asyncProperty(
            fc.integer({ min: 1, max: 300 }),
            fc.integer({ min: 1, max: 24 }),
            async (untilKilled, inFlight) => {
              const node = await startNodeProcess(folder.path);
              const writing = track(
                fork(childFile('appender-process'), [node.connectionString, randomUUID(), `${inFlight}`], {
                  stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
                  execArgv: [],
                }),
              );
              const ended = new Promise((resolve) => writing.once('exit', resolve));
              const before = acknowledged.length;
              writing.on('message', (message) => acknowledged.push(message as Acknowledged));
              await eventually(() => acknowledged.length >= before + untilKilled, 'appends are acknowledged');
              await node.kill();
              await ended;
            },
          ),
          { ...runs(5, 8), endOnFailure: true },
        );
        const last = await startNodeProcess(folder.path);
        const client = connect(last.connectionString);
        const found = new Map(
          (await collect(client.readAll({ fromPosition: START }))).map(({ event: e }) => [
            e?.id,
            `${e?.streamId}@${e?.revision}`,
          ]),
        );
        await disposeWithin(client);
        for (const { id, stream, revision } of acknowledged) {
          expect(found.get(id)).toBe(`${stream}@${revision}`);
        }
        expect(await last.terminate()).toBe(0);
        const again = await startTestNode({ dataDir: folder.path });
        expect((await again.node.verify()).faults).toEqual([]);
        await again.stop();
        folder.remove();
      },
    );
  });
}
