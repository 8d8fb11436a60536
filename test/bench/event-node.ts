/**
 * Figures of the event log through the real client, plain and as Berth uses it: the embedded node in a process of its
 * own and, when EVENTSTORE_URL is set, the same against that server; and what is left when a server answers from memory.
 * On a busy machine compare processor times.
 *
 *   npx tsc -b && node dist/test/bench/event-node.js [--seconds 4] [--insecure] [--only batches] [--through berth]
 */
import { parseArgs } from 'node:util';
import { loadavg } from 'node:os';
import { measure, type Figure } from './event-node/figures.js';
import { startMeasuredNode, startMemoryNode, type MeasuredNode } from './event-node/node-process.js';
import { berthLog, plainClient } from './event-node/subjects.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    insecure: { type: 'boolean', default: false },
    only: { type: 'string' },
    through: { type: 'string', default: 'client,berth' },
  },
});
const forMs = Number(values.seconds) * 1000;
const subjects = values.through.split(',').map((name) => (name === 'berth' ? berthLog : plainClient));

function print(title: string, figures: readonly Figure[]): void {
  console.log(`\n${title.padEnd(44)}${''.padEnd(14)}CPU µs an event: client    node`);
  for (const { name, value, budget, clientMicros, nodeMicros } of figures) {
    const cost = [clientMicros, nodeMicros].map((micros) => (micros?.toFixed(1) ?? '').padStart(8));
    const line = `${name.padEnd(28)}${value.padStart(14)}  ${budget.padEnd(28)}${cost.join('')}`;
    console.log(line.trimEnd());
  }
}

/** The server that EVENTSTORE_URL names: somebody else's process, whose time is not counted. */
const external = (url: string): MeasuredNode => ({
  url,
  cpuMicros: () => undefined,
  residentBytes: () => undefined,
  stop: () => Promise.resolve(),
});

const node = await startMeasuredNode({ insecure: values.insecure });
const real = process.env['EVENTSTORE_URL'];
const servers: readonly (readonly [string, MeasuredNode])[] = [
  [`embedded node, ${values.insecure ? 'no TLS' : 'TLS'}`, node],
  ...(real ? [['the server at EVENTSTORE_URL', external(real)] as const] : []),
];
console.log(
  `Node ${process.version}, load ${(loadavg()[0] ?? 0).toFixed(1)} before the start, ${values.seconds} s each`,
);
try {
  for (const [place, server] of servers) {
    for (const open of subjects) {
      const subject = open(server.url);
      print(
        `${place}, through ${subject.name}`,
        await measure(subject, server, { forMs, only: values.only }),
      );
      await subject.close();
    }
  }
  const memory = await startMemoryNode();
  for (const open of subjects) {
    const subject = open(memory.url);
    const figures = await measure(subject, memory, { forMs, only: values.only, appendsOnly: true });
    print(`the floor: a server in memory, no TLS, through ${subject.name}`, figures);
    await subject.close();
  }
  await memory.stop();
} finally {
  await node.stop();
}
process.exit(0);
