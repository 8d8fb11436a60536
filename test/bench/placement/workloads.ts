import { modelKey } from '#domain/ids.js';
import type { SimCall, SimModel } from '#placement/simulate/model.js';
import { Random } from '#placement/simulate/random.js';
import { simModel } from './hardware.js';
import {
  type ClientTrace,
  type Lengths,
  type RateWindow,
  readClients,
  readLengths,
  WINDOW_SECONDS,
} from './traces.js';

export interface Workload {
  readonly name: string;
  readonly models: readonly SimModel[];
  readonly calls: readonly SimCall[];
}

export const WORKLOADS = ['W1', 'W2', 'W3', 'W4', 'W5', 'W6'] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

/** Any day will do: the traces have none. */
export const START_MS = Date.parse('2026-01-05T00:00:00Z');
const DAY_SECONDS = 86_400;

/** Files of popular models at four to eight bits per weight, GB; W1 and W2 deal them out to the clients. */
export const FILE_SIZES_GB = [1.1, 2, 3.2, 4.7, 4.9, 6.6, 8.1, 9, 13, 14.8, 18.6, 19.9, 24, 31] as const;

/** Share of the calls of a whole cloud that one machine gets. */
const W1_SHARE = 0.004;
const W2_SHARE = 0.000024;
const W2_DAYS = 3;

interface Draft {
  readonly model: number;
  readonly atSeconds: number;
  readonly group?: string;
  readonly lengths?: Lengths;
}

export interface WorkloadOptions {
  readonly seed: number;
  /** Only the calls from and to these seconds; default all. */
  readonly fromSeconds?: number;
  readonly toSeconds?: number;
  readonly folder?: string;
}

export function workload(name: WorkloadName, options: WorkloadOptions): Workload {
  const random = new Random(options.seed).fork(name);
  switch (name) {
    case 'W1':
      return fromClients(
        name,
        readClients('deepseek-r1', options.folder),
        W1_SHARE,
        DAY_SECONDS,
        random,
        options,
      );
    case 'W2': {
      const clients = [...readClients('m-small', options.folder), ...readClients('m-large', options.folder)];
      return fromClients(name, clients, W2_SHARE, W2_DAYS * DAY_SECONDS, random, options);
    }
    case 'W3':
      return threeSlots(random, options);
    case 'W4':
      return embedThenChat(random, options);
    case 'W5':
      return inTurn(name, 2, 26, 45, random, options);
    case 'W6':
      return inTurn(name, RING, 18, 40, random, options);
  }
}

/** Each client stands for one model. Its gaps keep their family and burstiness while the rate is thinned. */
function fromClients(
  name: string,
  clients: readonly ClientTrace[],
  share: number,
  seconds: number,
  random: Random,
  options: WorkloadOptions,
): Workload {
  const sizes = clients.map((_, i) => FILE_SIZES_GB[i % FILE_SIZES_GB.length] ?? 1);
  const dealt = random.fork('sizes').shuffled(sizes);
  const models = clients.map((client, i) => simModel(modelKey(client.name), dealt[i] ?? 1));
  const drafts = clients.flatMap((client, model) =>
    arrivals(client, share, seconds, random.fork(client.name)).map((atSeconds) => ({ model, atSeconds })),
  );
  return finish(name, models, drafts, random, options);
}

/**
 * A renewal process whose rate follows the windows: a gap is drawn with mean 1 from the family of the window that it
 * begins in, and passes as the thinned rate adds up.
 */
export function arrivals(
  client: ClientTrace,
  share: number,
  seconds: number,
  random: Random,
): readonly number[] {
  const times: number[] = [];
  const first = client.windows.find((w) => w.perSecond > 0);
  if (!first) return times;
  let left = random.next() * gap(first, random);
  for (const window of client.windows) {
    if (window.startSeconds >= seconds) break;
    const rate = window.perSecond * share;
    if (rate <= 0) continue;
    let at = window.startSeconds;
    const end = Math.min(seconds, window.startSeconds + WINDOW_SECONDS);
    while (at + left / rate < end) {
      at += left / rate;
      times.push(at);
      left = gap(window, random);
    }
    left -= (end - at) * rate;
  }
  return times;
}

function gap(window: RateWindow, random: Random): number {
  if (window.family === undefined || !(window.shape > 0)) return random.exponential();
  return window.family === 'Gamma' ? random.gamma(window.shape) : random.weibull(window.shape);
}

/** Calls per second of the process that the calls of W1 and W2 are drawn from, by model and time: what no history can tell. */
export function trueRates(folder?: string): (key: SimModel['modelKey'], atMs: number) => number {
  const rates = new Map<string, readonly number[]>();
  for (const set of ['deepseek-r1', 'm-small', 'm-large'] as const) {
    const share = set === 'deepseek-r1' ? W1_SHARE : W2_SHARE;
    for (const { name, windows } of readClients(set, folder))
      rates.set(
        name,
        windows.map((w) => w.perSecond * share),
      );
  }
  return (key, atMs) => rates.get(key)?.[Math.floor((atMs - START_MS) / 1000 / WINDOW_SECONDS)] ?? 0;
}

/** Five models of one size for three places, the first asked most. */
function threeSlots(random: Random, options: WorkloadOptions): Workload {
  const models = Array.from({ length: 5 }, (_, i) => simModel(modelKey(`five-${i}`), 13));
  const weights = [0.36, 0.26, 0.18, 0.12, 0.08];
  const drafts: Draft[] = [];
  const draw = random.fork('arrivals');
  for (let at = 0; at < 6 * 3600; at += 40 * draw.exponential()) {
    let u = draw.next();
    const model = Math.max(
      0,
      weights.findIndex((w) => (u -= w) < 0),
    );
    drafts.push({ model, atSeconds: at });
  }
  return finish('W3', models, drafts, random, options);
}

const CHATS = 6;

/** Sessions of an embedding and, once it is answered, a chat on one of six models. */
function embedThenChat(random: Random, options: WorkloadOptions): Workload {
  const models = [
    simModel(modelKey('embedder'), 0.7),
    ...Array.from({ length: CHATS }, (_, i) => simModel(modelKey(`chat-${i}`), 9 + 3 * i)),
  ];
  const drafts: Draft[] = [];
  const draw = random.fork('arrivals');
  let session = 0;
  for (let at = 0; at < 8 * 3600; at += 60 * draw.exponential()) {
    const group = `session-${session++}`;
    const chat = 1 + Math.floor(CHATS * draw.next() ** 1.6);
    drafts.push({ model: 0, atSeconds: at, group, lengths: { promptTokens: 400, outputTokens: 1 } });
    drafts.push({ model: Math.min(CHATS, chat), atSeconds: at + 0.5, group });
  }
  return finish('W4', models, drafts, random, options);
}

/** One more model than there are places. */
export const RING = 5;

/** Equal models called in turn: two of them for one place, or one more than fit. */
function inTurn(
  name: string,
  count: number,
  fileGb: number,
  everySeconds: number,
  random: Random,
  options: WorkloadOptions,
): Workload {
  const models = Array.from({ length: count }, (_, i) => simModel(modelKey(`${name}-${i}`), fileGb));
  const draw = random.fork('arrivals');
  const drafts: Draft[] = [];
  let at = 0;
  for (let i = 0; i < 400; i++) {
    at += everySeconds * (0.75 + 0.5 * draw.next());
    drafts.push({ model: i % count, atSeconds: at });
  }
  return finish(name, models, drafts, random, options);
}

function finish(
  name: string,
  models: readonly SimModel[],
  drafts: readonly Draft[],
  random: Random,
  options: WorkloadOptions,
): Workload {
  const lengths = readLengths(options.folder);
  const draw = random.fork('lengths');
  const { fromSeconds = 0, toSeconds = Infinity } = options;
  const calls = [...drafts]
    .filter((draft) => draft.atSeconds >= fromSeconds && draft.atSeconds < toSeconds)
    .sort((a, b) => a.atSeconds - b.atSeconds)
    .map((draft, index): SimCall => {
      const { promptTokens, outputTokens } = draft.lengths ?? draw.pick(lengths);
      return {
        index,
        model: draft.model,
        atMs: START_MS + Math.round(draft.atSeconds * 1000),
        promptTokens,
        outputTokens,
        ...(draft.group === undefined ? {} : { group: draft.group }),
      };
    });
  return { name, models, calls };
}
