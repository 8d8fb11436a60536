/**
 * What an api that starts pays for the streams of workers: it reads each from its first event. A real embedded node and
 * the fold that the api uses, over one worker's stream of lives of residents.
 * Run: npx tsc -b && node dist/test/bench/fleet-start.js [--events 100000]
 */
import { cpus, loadavg } from 'node:os';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { openEventLog } from '#events/connect.js';
import { startEmbeddedNode } from '#events/testing/embedded-node.js';
import { Fleet } from '../../apps/api/src/fleet/fleet.js';
import { DrawnLoad, type Part } from '../support/drawn-load.js';

const APPEND_EVENTS = 60;
const { values } = parseArgs({ options: { events: { type: 'string', default: '100000' } } });
const wanted = Number(values.events);

const node = await startEmbeddedNode(undefined, { secure: true });
const log = openEventLog({ url: node.url, by: 'bench', now: Date.now });
const fleet = new Fleet(log);
try {
  const load = new DrawnLoad();
  let written = 0;
  while (written < wanted) {
    const events: Part['events'][number][] = [];
    let stream = '';
    while (events.length < APPEND_EVENTS)
      for (const part of load.life().filter((p) => p.stream.startsWith('worker-'))) {
        stream = part.stream;
        events.push(...part.events);
      }
    const outcome = await log.append(
      stream,
      events.map(({ id, event, at }) => ({ id, event, at, cause: { correlationId: id, causationId: id } })),
      'any',
    );
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.error));
    written += events.length;
  }
  console.log(`${cpus().length} cores, Node ${process.version}, load ${loadavg()[0]?.toFixed(1) ?? ''}`);
  const before = process.cpuUsage();
  const started = performance.now();
  await fleet.start();
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(before);
  const state = [...fleet.workers.values()][0];
  console.log(
    `api reads a worker's stream of ${(state ? state.revision + 1 : 0).toLocaleString('en')} events: ` +
      `${seconds.toFixed(1)} s, ${((user + system) / 1e6).toFixed(2)} s of processor`,
  );
} finally {
  await fleet.stop();
  await log.close();
  await node.stop();
}
