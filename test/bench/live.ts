import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import WebSocket from 'ws';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { initialCatalog } from '#domain/catalog/catalog.js';
import { workerId } from '#domain/ids.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { AllSubscriber } from '#events/event-log.js';
import { Story } from '#events/testing/story.js';
import { ok } from '#domain/result.js';
import { createLogger } from '#runtime/logger.js';
import { createLive } from '../../apps/api/src/live/live.js';
import { takeUpgrades } from '../../apps/api/src/live/socket/upgrades.js';

/**
 * What /live costs: clients over real sockets, events from a log that this bench plays, the server in a process of its own.
 * `node dist/test/bench/live.js [--clients 200] [--rate 100] [--seconds 20] [--check]`
 */
const flag = (name: string, fallback: number): number => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
};
const GIB = 1024 ** 3;
const CPU_LIMIT = 0.5;
const WAIT_LIMIT_MS = 250;
const LAST_FRAMES_MS = 20_000;
/** Enough for the positions of a frame and of its first change: reading all of it 200 times would be the bench's own cost. */
const HEAD_BYTES = 160;

interface Heard {
  readonly head: string;
  readonly atMs: number;
}

/** The server: real hub, fold and sockets; its log is played at a rate. */
async function serve(): Promise<void> {
  const story = new Story().machine(64 * GIB);
  for (let n = 0; n < 12; n += 1) story.loaded(`m${n}`, GIB, 40 * GIB);
  let subscriber: AllSubscriber | undefined;
  const server = createServer();
  const nobody = { progressOf: () => undefined, readingsOf: () => undefined, connected: [] };
  const worker = story.events.reduce(
    (state, event) => evolveWorker(state, event as never),
    initialWorker(workerId('w')),
  );
  const live = createLive({
    access: { management: () => ok({ rights: 'admin' as const }) },
    log: {
      subscribeAll: (_prefixes, given) => {
        subscriber = given;
        void given.onCaughtUp?.();
        return { ended: new Promise(() => undefined), stop: () => Promise.resolve() };
      },
      readBackwards: () => Promise.resolve([]),
      fold: (_stream, initial) => Promise.resolve(initial),
    },
    fleet: {
      position: story.events.at(-1)?.position,
      workers: new Map([[workerId('w'), worker]]),
      catalogs: new Map([[workerId('w'), initialCatalog(workerId('w'))]]),
      models: new Map(),
    },
    admission: { queue: [] },
    sessions: nobody,
    activity: { inFlight: () => 0, lastCallEndedAtMs: () => undefined },
    logger: createLogger('bench'),
    now: Date.now,
  });
  takeUpgrades(server, live.upgrade);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send?.({ port: (server.address() as AddressInfo).port });
  process.on('message', (said: { rate: number; seconds: number }) => void play(said));

  async function play({ rate, seconds }: { rate: number; seconds: number }): Promise<void> {
    const before = process.cpuUsage();
    const startedMs = performance.now();
    let written = 0;
    while (written < rate * seconds) {
      const due = Math.floor(((performance.now() - startedMs) / 1000) * rate);
      for (; written < Math.min(due, rate * seconds); written += 1) {
        const count = story.events.length;
        // Of ten events eight are of calls, and two of residents and devices.
        if (written % 10 < 4) story.callStarted(`c${written}`);
        else if (written % 10 < 8) story.callFinished(`c${written - 4}`);
        else if (written % 20 < 10) story.evictionStarted('m1');
        else
          story.worker({
            type: 'EvictionFailed',
            data: { residentId: 'm1' as never, reason: 'operator', why: 'busy', message: 'It was busy.' },
          });
        const event = story.events[count] as Recorded<BerthEvent>;
        void subscriber?.onEvent({ ...event, metadata: { ...event.metadata, at: String(Date.now()) } });
        sentAt.set(event.position.commit.toString(), Date.now());
      }
      await pause(5);
    }
    await pause(300);
    const { user, system } = process.cpuUsage(before);
    // Per second of the events' own time: on a busy machine they take longer than that.
    process.send?.({ cores: (user + system) / 1e6 / seconds, sent: Object.fromEntries(sentAt) });
  }
}
const sentAt = new Map<string, number>();

async function main(): Promise<void> {
  const [clients, rate, seconds] = [flag('clients', 200), flag('rate', 100), flag('seconds', 20)];
  const server = fork(fileURLToPath(import.meta.url), ['--serve'], { execArgv: [] });
  const [{ port }] = (await once(server, 'message')) as [{ port: number }];
  const heard: Heard[][] = [];
  const sockets = await Promise.all(
    Array.from({ length: clients }, async (_, n) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/live`);
      const mine: Heard[] = [];
      heard[n] = mine;
      await once(socket, 'open');
      socket.on('message', (data: Buffer) =>
        mine.push({ head: data.toString('latin1', 0, HEAD_BYTES), atMs: Date.now() }),
      );
      socket.send(
        JSON.stringify({ subscribe: ['residents', 'devices', 'calls', 'decisions', 'evictions', 'queue'] }),
      );
      await once(socket, 'message');
      return socket;
    }),
  );
  server.send({ rate, seconds });
  const [{ cores, sent }] = (await once(server, 'message')) as [
    { cores: number; sent: Record<string, number> },
  ];
  const last = Object.keys(sent).at(-1) ?? '';
  const isThere = () => heard.every((mine) => mine.some(({ head }) => head.includes(`"position":"${last}"`)));
  for (const until = Date.now() + LAST_FRAMES_MS; !isThere() && Date.now() < until;) await pause(100);
  for (const socket of sockets) socket.terminate();
  server.kill();
  // The first change of a frame waited longest: its position is the second in the frame.
  const waits = heard.flat().flatMap(({ head, atMs }) => {
    const first = [...head.matchAll(/"position":"(\d+)"/g)][1]?.[1];
    const sentMs = first === undefined ? undefined : sent[first];
    return sentMs === undefined ? [] : [atMs - sentMs];
  });
  waits.sort((one, other) => one - other);
  const at = (share: number): number =>
    waits[Math.min(waits.length - 1, Math.floor(share * waits.length))] ?? NaN;
  const complete = isThere();
  console.log(`${clients} clients, ${rate} events/s, ${seconds} s: ${waits.length} frames`);
  console.log(`server: ${cores.toFixed(2)} of a core (limit ${CPU_LIMIT})`);
  console.log(`wait: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms (limit ${WAIT_LIMIT_MS} ms)`);
  console.log(complete ? 'every client was told to the last event' : 'CLIENTS MISSED EVENTS');
  const good = complete && cores < CPU_LIMIT && at(1) <= WAIT_LIMIT_MS;
  if (process.argv.includes('--check') && !good) process.exitCode = 1;
}

await (process.argv.includes('--serve') ? serve() : main());
