import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { say } from './verdict.js';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** By what a function's file, or else its name, holds; the first that fits. */
const GROUPS: readonly (readonly [string, RegExp])[] = [
  ['idle', /^\(idle\)/],
  ['compiling, and what has no name', /^\((?:program|root)\)/],
  ['collection of garbage', /^\(garbage collector\)/],
  ['writes to sockets and files', /^(?:writeBuffer|writev|writeLatin1String|writeUtf8String|writeString) $/],
  ['reading and checking of bodies', /gateway\/(?:body|call-body|top-level|prompt-bound)/],
  ['the gateway’s other work', /apps\/api\/src\/(?:gateway|access)\//],
  ['admission', /apps\/api\/src\/(?:admission|agents|fleet)\/|libs\/placement\//],
  ['records: events, access log, metrics', /apps\/api\/src\/(?:recorder|live)\/|prom-client|sonic-boom|pino/],
  ['spool and client of the event log', /libs\/events\/|grpc-js|@eventstore|google-protobuf/],
  ['node: HTTP', /node:_http|node:internal\/http/],
  ['node: sockets and streams', /node:net|node:internal\/(?:stream|js_stream)|node:events/],
  ['node: the rest', /node:/],
];

/** Where the processor time of the one process went that left its profile in a folder, by groups of files. */
export function sayProfile(folder: string): void {
  const file = readdirSync(folder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .sort()
    .at(-1);
  if (file === undefined) throw new Error(`${folder} has no profile`);
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile;
  const groupOf = new Map(
    nodes.map(({ id, callFrame: { functionName, url } }) => {
      const name = `${functionName} ${url}`;
      return [id, GROUPS.find(([, pattern]) => pattern.test(name))?.[0] ?? 'the rest'];
    }),
  );
  const spent = new Map<string, number>();
  let busy = 0;
  for (const [at, id] of samples.entries()) {
    const group = groupOf.get(id) ?? 'the rest';
    if (group === 'idle') continue;
    const us = timeDeltas[at] ?? 0;
    spent.set(group, (spent.get(group) ?? 0) + us);
    busy += us;
  }
  say(`\nWhere the api's time went, its start included (${(busy / 1e6).toFixed(1)} s on its main thread)`);
  for (const [group, us] of [...spent].sort((a, b) => b[1] - a[1]))
    say(`${group.padEnd(44)}${((us / busy) * 100).toFixed(1).padStart(6)} %`);
}
