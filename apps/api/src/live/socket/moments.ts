import type { ActivityItem, MomentTopic, QueueItem, ReadingItem } from '#domain/wire/index.js';
import { MOMENT_TOPICS } from './frames.js';
import type { LiveClient } from './live-client.js';

/** What is of the moment, as it stands when it is asked. */
export interface MomentSources {
  queue(): readonly QueueItem[];
  activity(): readonly ActivityItem[];
  readings(): readonly ReadingItem[];
}

/** How often it is looked at, while a client wants it. */
const LOOK_MS = 200;

/** Times that pass by themselves are no news. */
const PASSING: ReadonlySet<string> = new Set(['waitedSeconds', 'elapsedSeconds', 'freeInSeconds']);
const essence = (items: unknown): string =>
  JSON.stringify(items, (key, value: unknown) => (PASSING.has(key) ? undefined : value));

interface Told {
  readonly essence: string;
  readonly text: string;
}

/** Tells clients of the moment's topics when something in them changed: each time the whole, made into text once. */
export class Moments {
  readonly #sources: MomentSources;
  readonly #clients: () => Iterable<LiveClient>;
  readonly #now: () => number;
  readonly #told = new Map<MomentTopic, Told>();
  #timer: NodeJS.Timeout | undefined;

  constructor(sources: MomentSources, clients: () => Iterable<LiveClient>, now: () => number) {
    this.#sources = sources;
    this.#clients = clients;
    this.#now = now;
  }

  /** A client has just subscribed: it is told how everything stands. */
  greet(client: LiveClient): void {
    for (const topic of MOMENT_TOPICS) {
      if (!client.topics.has(topic)) continue;
      this.#look(topic);
      const told = this.#told.get(topic);
      if (told) client.send(told.text);
    }
    this.#timer ??= setInterval(() => this.round(), LOOK_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks once at everything that somebody wants. */
  round(): void {
    const clients = [...this.#clients()];
    if (clients.length === 0) {
      this.stop();
      return;
    }
    for (const topic of MOMENT_TOPICS) {
      const wanting = clients.filter((client) => client.topics.has(topic));
      if (wanting.length === 0) continue;
      const before = this.#told.get(topic);
      this.#look(topic);
      const told = this.#told.get(topic);
      if (!told || told === before) continue;
      for (const client of wanting) client.send(told.text);
    }
  }

  #look(topic: MomentTopic): void {
    const items = this.#sources[topic]();
    const now = essence(items);
    if (this.#told.get(topic)?.essence === now) return;
    const at = new Date(this.#now()).toISOString();
    this.#told.set(topic, { essence: now, text: JSON.stringify({ type: 'moment', topic, at, items }) });
  }
}
