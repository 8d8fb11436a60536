import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { MIB } from '#domain/units.js';
import { API_NODE_FLAGS } from '../../apps/cli/src/up/node-flags.js';
import { compare, type Measured } from './proxy/compare.js';
import { load1 } from './measures.js';
import { FRAMES, say, verdict } from './proxy/verdict.js';
import { runEngine, runFloor } from './proxy/servers.js';
import { sayProfile } from './proxy/profile.js';
import { soak } from './proxy/soak.js';
import { pin } from './proxy/pin.js';
import { type BenchStand, startBenchStand } from './proxy/stand.js';
import { idleStreams, paced, readiness } from './proxy/streams.js';

/**
 * What the front door adds to a call, printed side by side from one run: straight to a simulated engine, through a
 * minimal Node proxy (the floor), and through Berth with recording on, in short rounds that take turns.
 * Run: `node dist/test/bench/proxy.js [--seconds 3] [--only json,burst,paced,large,ready,idle,soak] [--soak 10m] [--pin]
 * [--cpu-prof DIR]`; `--soak` alone runs the soak alone. `--pin` gives the proxies a core that nothing else of the bench
 * runs on. With `--cpu-prof` it says at the end where the api's time went.
 */
const IDLE_STREAMS = 1000;
/** Growth that a collector's timing alone can show. */
const SOAK_GROWTH_BYTES = 8 * MIB;

const bodyOf = (contentBytes: number, more: Record<string, unknown> = {}): string =>
  JSON.stringify({
    model: 'bench',
    messages: [{ role: 'user', content: 'x'.repeat(contentBytes) }],
    max_tokens: 16,
    ...more,
  });
const SMALL = bodyOf(800);
/** As bodies grow large: by a picture in them. */
const withPicture = (bytes: number): string => {
  const url = `data:image/png;base64,${'x'.repeat(bytes)}`;
  const content = [{ type: 'image_url', image_url: { url } }];
  return JSON.stringify({ model: 'bench', messages: [{ role: 'user', content }], max_tokens: 16 });
};
const streamed = (kind: string): string => bodyOf(800, { stream: true, kind });

function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
}

/** `10m`, `90s`. */
function minutesOf(text: string): number {
  const [, count, unit] = /^([\d.]+)(m|s)$/.exec(text) ?? [];
  if (count === undefined) throw new Error(`--soak takes a time such as 10m or 90s, not "${text}"`);
  return unit === 's' ? Number(count) / 60 : Number(count);
}

async function main(): Promise<void> {
  const seconds = Number(option('seconds') ?? 3);
  const soakFor = option('soak');
  const minutes = minutesOf(soakFor ?? '1m');
  const only = (option('only') ?? (soakFor === undefined ? undefined : 'soak'))?.split(',');
  const profile = option('cpu-prof');
  const flags = [
    ...API_NODE_FLAGS,
    ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
  ];
  const stand = await startBenchStand(fileURLToPath(import.meta.url), flags);
  try {
    if (process.argv.includes('--pin')) pin(stand);
    say(
      `${cpus().length} cores, load ${load1()}, Node ${process.version}, ${seconds} s each, body ${SMALL.length} B`,
    );
    const lines: string[] = [];
    for (const [name, part] of Object.entries(PARTS)) {
      if (only === undefined || only.includes(name)) lines.push(...(await part(stand, seconds, minutes)));
    }
    say(`\n${'budget'.padEnd(58)}${'measured'.padStart(12)}   ${'asked'.padEnd(12)} holds`);
    for (const line of lines) say(line);
    say(`load at the end: ${load1()}`);
  } finally {
    await stand.stop();
  }
  if (profile !== undefined) sayProfile(profile);
}

type Part = (stand: BenchStand, seconds: number, minutes: number) => Promise<readonly string[]>;

const all = ({ direct, floor, berth }: BenchStand) => [direct, floor, berth] as const;
const of = (measured: readonly Measured[], name: string): Measured => {
  const found = measured.find((m) => m.name === name);
  if (!found) throw new Error(`nothing was measured of ${name}`);
  return found;
};
const ms = (value: number): string => `${value.toFixed(3)} ms`;
const times = (value: number): string => `${value.toFixed(2)} ×`;

const PARTS: Readonly<Record<string, Part>> = {
  json: async (stand, seconds) => {
    const one = await compare('JSON', all(stand), stand.nodePid, { connections: 1, seconds, body: SMALL });
    const many = await compare('JSON', all(stand), stand.nodePid, { connections: 16, seconds, body: SMALL });
    const added = of(one, 'berth').p50Ms - of(one, 'direct').p50Ms;
    const floorAdds = of(one, 'floor').p50Ms - of(one, 'direct').p50Ms;
    const { perSecond, cpuMs } = of(many, 'berth');
    const floor = of(many, 'floor').perSecond;
    const alone = 1000 / cpuMs;
    const overFloor = (connections: string, measured: readonly Measured[]) => {
      const cpu = of(measured, 'berth').cpuMs / of(measured, 'floor').cpuMs;
      return verdict(`CPU per call over the floor, ${connections}`, times(cpu), '≤ 1.5 ×', cpu <= 1.5);
    };
    return [
      verdict(
        `added p50, 1 connection (the floor adds ${ms(floorAdds)})`,
        ms(added),
        '≤ 0.15 ms',
        added <= 0.15,
      ),
      verdict(
        `calls/s, 16 connections (${(perSecond / floor).toFixed(2)} of the floor's ${floor.toFixed(0)})`,
        perSecond.toFixed(0),
        '≥ 6000',
        perSecond >= 6000,
      ),
      verdict(
        '  derived: 1 / CPU per call, with a core to itself',
        alone.toFixed(0),
        '≥ 6000',
        alone >= 6000,
      ),
      overFloor('1 connection', one),
      overFloor('16 connections', many),
    ];
  },
  burst: async (stand, seconds) => {
    const what = `${FRAMES} frames streamed in a burst`;
    const body = streamed('burst');
    await compare(what, all(stand), stand.nodePid, { connections: 1, seconds, body });
    const many = await compare(what, all(stand), stand.nodePid, { connections: 16, seconds, body });
    const share = of(many, 'berth').perSecond / of(many, 'floor').perSecond;
    return [verdict('bursts, calls/s over the floor', times(share), '≥ 0.8 ×', share >= 0.8)];
  },
  paced: async (stand) => {
    const figures = await paced(all(stand), streamed('paced'));
    const share =
      (figures.get('berth')?.tokensPerSecond ?? NaN) / (figures.get('direct')?.tokensPerSecond ?? NaN);
    return [verdict('paced streams, tokens/s over direct', times(share), '≥ 0.9 ×', share >= 0.9)];
  },
  large: async (stand, seconds) => {
    const lines: string[] = [];
    for (const [name, bytes] of [
      ['100 kB', 100_000],
      ['2 MB', 2_000_000],
    ] as const) {
      const body = withPicture(bytes);
      const m = await compare(`JSON of ${name}`, all(stand), stand.nodePid, {
        connections: 1,
        seconds,
        body,
      });
      const ratio = of(m, 'berth').p50Ms / of(m, 'floor').p50Ms;
      lines.push(verdict(`body of ${name}, p50 over the floor`, times(ratio), '≤ 1.5 ×', ratio <= 1.5));
    }
    return lines;
  },
  ready: async (stand) => {
    const { p50Ms, maxMs } = await readiness(stand);
    say(`\nLoaded → first token at the caller: p50 ${p50Ms} ms, most ${maxMs} ms`);
    return [verdict('loaded → first token at the caller, p50', `${p50Ms} ms`, '≤ 20 ms', p50Ms <= 20)];
  },
  idle: async (stand) => {
    const bytes = await idleStreams(stand, IDLE_STREAMS, streamed('idle'));
    const mib = (bytes / MIB).toFixed(1);
    return [verdict(`${IDLE_STREAMS} idle open streams`, `${mib} MiB`, '< 60 MiB', bytes < 60 * MIB)];
  },
  soak: async (stand, _seconds, minutes) => {
    const bodies = [SMALL, streamed('burst'), bodyOf(100_000)];
    const { startBytes, endBytes } = await soak(stand.berth, bodies, minutes);
    const grown = (endBytes - startBytes) / MIB;
    const holds = endBytes - startBytes < SOAK_GROWTH_BYTES;
    return [
      verdict(`soak of ${minutes} min, growth since halfway`, `${grown.toFixed(1)} MiB`, '< 8 MiB', holds),
    ];
  },
};

const role = process.argv[2];
if (role === '--engine') runEngine();
else if (role === '--floor') runFloor(Number(process.argv[3]));
else await main();
