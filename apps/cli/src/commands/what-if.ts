import { setTimeout as pause } from 'node:timers/promises';
import type { WhatIfItem, WhatIfNight, WhatIfRequest } from '#domain/wire/index.js';
import { MIB, parseBytes } from '#domain/units.js';
import { EVICTION_ORDERS } from '#domain/placement-terms.js';
import { parseArgs, type ParsedArgs, valueIn } from '../args.js';
import type { AdminClient } from '../client/admin-client.js';
import { UsageError } from '../usage-error.js';
import { nightsText } from '../views/what-if-nights-view.js';
import { whatIfText } from '../views/what-if-view.js';
import { type Command, exit, flagOn, flagText } from './command.js';
import { clientOf, READER_FLAGS, READER_FLAGS_HELP } from './readers.js';

export const FLAGS = {
  ...READER_FLAGS,
  last: 'value',
  from: 'value',
  to: 'value',
  'ram-max': 'value',
  'vram-max': 'value',
  device: 'value',
  workers: 'value',
  policy: 'value',
  set: 'value',
  'no-bound': 'switch',
  nightly: 'switch',
} as const;

const LOOK_EVERY_MS = 500;
const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Asks what the logged calls would have met on something else, and waits for the answer. */
export const whatIf: Command = {
  name: 'what-if',
  usage: 'what-if [--last 24h] [--device CARD=24GiB] [--ram-max SIZE] …',
  summary: 'the calls that were, on other hardware, settings or another policy',
  details: [
    'Takes the logged calls of a time through the same decisions and queue again, beside what really',
    'happened and the least loading possible.',
    '  --last 24h, 7d           until now; 24h when nothing is said',
    '  --from TIME, --to TIME   ISO times instead: 2026-01-05, 2026-01-05T08:00Z',
    '  --device CARD=24GiB,…    a card of another size, by its id or a part of its name; an unknown one',
    '                           is put beside the others',
    '  --ram-max SIZE           so much RAM for models; --vram-max SIZE: so much of each card',
    '  --workers N              N workers more, each a copy of the first',
    `  --policy ${EVICTION_ORDERS.join('|')}   whom to evict`,
    '  --set NAME=VALUE,…       any placement setting, for every model',
    '  --nightly                nothing is asked: the summary of each night, newest first',
    '  --no-bound               without the least loading possible, which takes longest',
    READER_FLAGS_HELP,
  ].join('\n'),
  group: 'look',
  run: async (argv) => {
    const args = parseArgs(argv, FLAGS, 'what-if');
    if (args.words.length > 0) throw new UsageError(`\`berth what-if\` takes no "${args.words[0] ?? ''}"`);
    const client = clientOf(args);
    if (flagOn(args, 'nightly')) {
      const nights = await client.list<WhatIfNight>('/admin/what-if/nightly');
      console.log(flagOn(args, 'json') ? JSON.stringify(nights, null, 2) : nightsText(nights));
      return exit(0);
    }
    const asked = requestOf(args, Date.now());
    const end = await endOf(client, await client.send<WhatIfItem>('POST', '/admin/what-if', asked));
    if (flagOn(args, 'json')) console.log(JSON.stringify(end, null, 2));
    else if (end.report) console.log(whatIfText(end.report));
    if (end.state === 'failed' && !flagOn(args, 'json')) throw new Error(end.error ?? 'It failed.');
    return exit(end.state === 'failed' ? 1 : 0);
  },
};

/** @throws UsageError for what is no size, time or pair */
export function requestOf(args: ParsedArgs, nowMs: number): WhatIfRequest {
  const last = flagText(args, 'last');
  const from = timeOf(args, 'from') ?? new Date(nowMs - msOf(last ?? '24h')).toISOString();
  if (last !== undefined && flagText(args, 'from') !== undefined)
    throw new UsageError('--last and --from both say when it begins; give one of them');
  const to = timeOf(args, 'to') ?? new Date(nowMs).toISOString();
  const [ram, vram] = [sizeOf(args, 'ram-max'), sizeOf(args, 'vram-max')];
  const devices = pairsOf(args, 'device').map(([name, size]) => ({ name, bytes: bytesIn(size, 'device') }));
  const policy = flagText(args, 'policy');
  if (policy !== undefined && !EVICTION_ORDERS.some((order) => order === policy))
    throw new UsageError(`--policy is one of ${EVICTION_ORDERS.join(', ')}`);
  const settings = Object.fromEntries([
    ...pairsOf(args, 'set').map(([name, value]) => [name, valueIn(value)] as const),
    ...(policy === undefined ? [] : [['evictionOrder', policy] as const]),
  ]);
  const workers = flagText(args, 'workers');
  if (workers !== undefined && !/^\d{1,2}$/.test(workers))
    throw new UsageError('--workers is how many more, such as 1');
  return {
    from,
    to,
    ...(ram === undefined ? {} : { ramMaxBytes: ram }),
    ...(vram === undefined ? {} : { vramMaxBytes: vram }),
    ...(devices.length === 0 ? {} : { devices }),
    ...(workers === undefined ? {} : { moreWorkers: Number(workers) }),
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(flagOn(args, 'no-bound') ? { bound: false } : {}),
  };
}

function msOf(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? 0);
  if (ms === 0) throw new UsageError('--last is a time such as 90m, 24h or 7d');
  return ms;
}

function timeOf(args: ParsedArgs, name: 'from' | 'to'): string | undefined {
  const text = flagText(args, name);
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new UsageError(`--${name} is a time such as 2026-01-05 or 2026-01-05T08:00Z`);
  return new Date(ms).toISOString();
}

function sizeOf(args: ParsedArgs, name: 'ram-max' | 'vram-max'): number | undefined {
  const text = flagText(args, name);
  return text === undefined ? undefined : bytesIn(text, name);
}

function bytesIn(text: string, flag: string): number {
  const bytes = parseBytes(text);
  if (!bytes) throw new UsageError(`--${flag}: "${text}" is no size; write one such as 24GiB`);
  if (bytes < MIB)
    throw new UsageError(`--${flag}: "${text}" is less than a MiB; write it with its unit, such as 24GiB`);
  return bytes;
}

/** `NAME=VALUE`, several with commas between them. */
function pairsOf(args: ParsedArgs, name: 'device' | 'set'): readonly (readonly [string, string])[] {
  const text = flagText(args, name);
  if (text === undefined) return [];
  return text.split(',').map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1 || at === pair.length - 1) throw new UsageError(`--${name}: "${pair}" is no NAME=VALUE`);
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  });
}

/** Says on a terminal what is under way. */
async function endOf(client: AdminClient, begun: WhatIfItem): Promise<WhatIfItem> {
  let item = begun;
  let told = '';
  while (item.state === 'running') {
    const step = item.step ?? '';
    if (step !== told && process.stderr.isTTY) process.stderr.write(`${step} …\n`);
    told = step;
    await pause(LOOK_EVERY_MS);
    item = await client.get<WhatIfItem>(`/admin/what-if/${encodeURIComponent(begun.id)}`);
  }
  return item;
}
