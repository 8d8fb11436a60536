import { get, segment } from './client.js';
import { dependsOn } from './depends-on.js';
import { Resource } from './resource.svelte.js';

/** Something that an api was asked for and works on: it has a state, and ends in one. */
export interface AskedItem {
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly startedAt: string;
  readonly error?: string;
}

/** What was asked of an api at one path, newest first, and one of it: the newest, or the one that somebody chose. */
export class Asked<Item extends AskedItem> {
  readonly list: Resource<{ items: readonly Item[] }>;
  /** Null: nothing was asked yet. It is looked at again while it runs. */
  readonly shown: Resource<Item | null>;
  #chosen = $state<string | undefined>();

  /** Called while a component is made. */
  constructor(path: string, lookEveryMs: number) {
    this.list = new Resource((signal) => get(path, undefined, signal));
    this.shown = new Resource(async (signal) => {
      const id =
        this.#chosen ?? (await get<{ items: readonly Item[] }>(path, undefined, signal)).items[0]?.id;
      return id === undefined ? null : get<Item>(`${path}/${segment(id)}`, undefined, signal);
    });
    $effect(() => {
      dependsOn(this.shown.value);
      if (!this.running) return;
      const timer = setTimeout(() => this.shown.reload(), lookEveryMs);
      return () => clearTimeout(timer);
    });
  }

  get id(): string | undefined {
    return this.#chosen ?? this.shown.value?.id;
  }

  get running(): boolean {
    return this.shown.value?.state === 'running';
  }

  choose(id: string): void {
    this.#chosen = id;
  }

  /** It was just asked: it is the one that is looked at. */
  begun(item: Item): void {
    this.#chosen = item.id;
    this.list.reload();
    this.shown.reload();
  }
}
