import type { LiveFrame, LiveItems, LiveSubscribe, LiveTopic, MomentTopic } from '#domain/wire/index.js';
import { POSITION } from '../../admin/paging/page.js';
import type { RingEntry } from './ring.js';

export const LIVE_TOPICS: readonly LiveTopic[] = [
  'residents',
  'devices',
  'calls',
  'decisions',
  'evictions',
  'pulls',
  'operator',
  'models',
];
export const MOMENT_TOPICS: readonly MomentTopic[] = ['queue', 'activity', 'readings'];
const ALL: readonly string[] = [...LIVE_TOPICS, ...MOMENT_TOPICS];

export const frame = (value: LiveFrame): string => JSON.stringify(value);

/** Of the entries whose topic is wanted; undefined when there are none. */
export function changesFrame(
  entries: readonly RingEntry[],
  topics: ReadonlySet<string>,
  position: bigint,
): string | undefined {
  const texts = entries.filter((entry) => topics.has(entry.topic)).map((entry) => entry.text);
  if (texts.length === 0) return undefined;
  return `{"type":"changes","position":"${position}","changes":[${texts.join(',')}]}`;
}

export const snapshotFrame = <T extends LiveTopic>(
  topic: T,
  position: bigint,
  items: readonly LiveItems[T][],
): string => JSON.stringify({ type: 'snapshot', topic, position: position.toString(), items });

export interface Subscribe {
  readonly topics: ReadonlySet<string>;
  readonly since?: bigint;
}

/** @returns what the client wants, or a sentence that says what is wrong with its message. */
export function subscribeIn(text: string): Subscribe | string {
  let read: Partial<LiveSubscribe> | null;
  try {
    read = JSON.parse(text) as Partial<LiveSubscribe> | null;
  } catch {
    return 'A message must be JSON, such as {"subscribe": ["residents", "queue"]}.';
  }
  const wanted: unknown = read?.subscribe;
  if (!Array.isArray(wanted)) return '"subscribe" must be a list of topics.';
  const unknown: unknown = wanted.find((topic) => typeof topic !== 'string' || !ALL.includes(topic));
  if (unknown !== undefined) {
    return `There is no topic ${JSON.stringify(unknown).slice(0, 60)}. Topics are ${ALL.join(', ')}.`;
  }
  const topics = new Set(wanted as string[]);
  const { since } = read ?? {};
  if (since === undefined) return { topics };
  if (typeof since !== 'string' || !POSITION.test(since))
    return '"since" must be a position that a frame had.';
  return { topics, since: BigInt(since) };
}
