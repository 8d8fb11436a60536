import { readdirSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { markedProcesses } from '../../apps/worker-agent/src/engines/engine-family.js';
import { expectedText, makeModel } from '../../apps/worker-agent/src/make-model/index.js';
import { processes, type Stack } from '../support/stack.js';

/** Small models with two texts each: a replaced file can be told from the old one by its answer. */
export const SMALL = ['quay/a', 'quay/b', 'quay/c'] as const;
/** Two of these do not fit beside each other: calls to both evict one for the other. */
export const LARGE = { 'quay/first': 1, 'quay/second': 2 } as const;
export const RAM_MAX = '420MiB';
export const LARGE_MB = 120;

export type Small = (typeof SMALL)[number];
export type SmallPreset = 'chat-a' | 'chat-b';

/** Draws from a seed: the same seed gives the same faults in the same order. */
export class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1;
  }

  /** 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  of<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.next() * items.length)];
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }
}

export interface Mixed {
  readonly stack: Stack;
  readonly draw: Draw;
  /** What the file of each small model holds now. */
  readonly presets: Map<Small, SmallPreset>;
}

/** One fault: done, waited for where it lasts, and undone. @returns whether there was anything to hurt */
export type Fault = (mixed: Mixed) => Promise<boolean>;

export const engineFolder = (stack: Stack): string => join(stack.home, 'engines');

/** Calls to models of which one fits start engines all the time. */
const STARTS_WITHIN_MS = 5000;

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function signal(pid: number | undefined, name: NodeJS.Signals): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** A child of the supervisor by its name; undefined while it is being started again. */
function childOf(stack: Stack, name: string): number | undefined {
  try {
    return stack.pidOf(name);
  } catch {
    return undefined;
  }
}

const kill =
  (name: string): Fault =>
  ({ stack }) =>
    Promise.resolve(signal(childOf(stack, name), 'SIGKILL'));

const freeze =
  (name: string, lowMs: number, highMs: number): Fault =>
  async ({ stack, draw }) => {
    const ms = draw.between(lowMs, highMs);
    const pid = childOf(stack, name);
    if (!signal(pid, 'SIGSTOP')) return false;
    await rest(ms);
    signal(pid, 'SIGCONT');
    return true;
  };

/** An engine in whatever state it is: loading, ready, serving, being evicted. */
const engineOf = ({ stack, draw }: Mixed): number | undefined =>
  draw.of(markedProcesses(engineFolder(stack)))?.pid;

const killEngine: Fault = (mixed) => Promise.resolve(signal(engineOf(mixed), 'SIGKILL'));

const freezeEngine: Fault = async (mixed) => {
  const ms = mixed.draw.between(500, 4000);
  const pid = engineOf(mixed);
  if (!signal(pid, 'SIGSTOP')) return false;
  await rest(ms);
  signal(pid, 'SIGCONT');
  return true;
};

/** The agent and an engine at once: what was to be adopted is gone. */
const killBoth: Fault = (mixed) => {
  const engine = engineOf(mixed);
  const agent = signal(childOf(mixed.stack, 'agent'), 'SIGKILL');
  return Promise.resolve(agent && signal(engine, 'SIGKILL'));
};

export const fileOf = (home: string, model: string): string =>
  join(home, 'models', ...model.split('/'), `${model.split('/').at(-1) ?? model}-F16.gguf`);

const replaceFile: Fault = async ({ stack, draw, presets }) => {
  const model = draw.of(SMALL) ?? SMALL[0];
  const preset = presets.get(model) === 'chat-a' ? 'chat-b' : 'chat-a';
  const file = fileOf(stack.home, model);
  await makeModel({ preset, file: `${file}.next` });
  renameSync(`${file}.next`, file);
  presets.set(model, preset);
  return true;
};

const removeFile: Fault = async ({ stack, draw, presets }) => {
  const model = draw.of(SMALL) ?? SMALL[0];
  const file = fileOf(stack.home, model);
  rmSync(file);
  await rest(draw.between(500, 3000));
  await makeModel({ preset: presets.get(model) ?? 'chat-a', file });
  return true;
};

/** Its mapped pages go under whoever serves it: it may crash, and must not answer with anything else. */
const truncateFile: Fault = async ({ stack, draw, presets }) => {
  const model = draw.of(SMALL) ?? SMALL[0];
  const file = fileOf(stack.home, model);
  const next = `${file}.next`;
  truncateSync(file, 4096);
  await rest(draw.between(500, 3000));
  await makeModel({ preset: presets.get(model) ?? 'chat-a', file: next });
  renameSync(next, file);
  return true;
};

/** The agent, as soon as there is an engine that was not there: the log may not know of it yet. */
const killAgentAtStart: Fault = async ({ stack }) => {
  const files = () => readdirSync(engineFolder(stack)).filter((name) => name.endsWith('.json'));
  const before = new Set(files());
  const until = performance.now() + STARTS_WITHIN_MS;
  while (files().every((name) => before.has(name))) {
    if (performance.now() > until) return false;
    await rest(2);
  }
  return signal(childOf(stack, 'agent'), 'SIGKILL');
};

/** Every kind of fault, and how often it stands in a deck. */
export const FAULTS = {
  'an engine killed': { fault: killEngine, cards: 3 },
  'an engine frozen': { fault: freezeEngine, cards: 1 },
  'the agent killed': { fault: kill('agent'), cards: 2 },
  'the agent frozen': { fault: freeze('agent', 500, 4000), cards: 1 },
  'the agent killed as it started an engine': { fault: killAgentAtStart, cards: 2 },
  'the agent and an engine killed': { fault: killBoth, cards: 1 },
  'the api killed': { fault: kill('api'), cards: 1 },
  'the projector killed': { fault: kill('projector'), cards: 1 },
  'the event node killed': { fault: kill('event-node'), cards: 1 },
  'the event node frozen': { fault: freeze('event-node', 500, 8000), cards: 1 },
  'a model file replaced': { fault: replaceFile, cards: 1 },
  'a model file removed for a while': { fault: removeFile, cards: 1 },
  'a model file cut short for a while': { fault: truncateFile, cards: 1 },
} as const satisfies Readonly<Record<string, { readonly fault: Fault; readonly cards: number }>>;

export type FaultKind = keyof typeof FAULTS;
export const FAULT_KINDS = Object.keys(FAULTS) as FaultKind[];

/**
 * Faults as from a shuffled deck: the first has each kind once, so that none is left out by chance however short the run;
 * those after it have the likelier kinds more often.
 */
export class Deck {
  readonly #draw: Draw;
  #cards: FaultKind[];

  constructor(draw: Draw) {
    this.#draw = draw;
    this.#cards = this.#shuffled(FAULT_KINDS);
  }

  next(): FaultKind {
    if (this.#cards.length === 0)
      this.#cards = this.#shuffled(
        FAULT_KINDS.flatMap((kind) => Array.from({ length: FAULTS[kind].cards }, () => kind)),
      );
    return this.#cards.pop() ?? 'an engine killed';
  }

  /** There was nothing to hurt in this way: it comes again soon, and not at once. */
  putBack(kind: FaultKind): void {
    this.#cards.splice(Math.max(0, this.#cards.length - 2), 0, kind);
  }

  #shuffled(kinds: readonly FaultKind[]): FaultKind[] {
    const cards = [...kinds];
    for (let last = cards.length - 1; last > 0; last -= 1) {
      const other = Math.floor(this.#draw.next() * (last + 1));
      [cards[last], cards[other]] = [cards[other]!, cards[last]!];
    }
    return cards;
  }
}

/** The texts that a model may answer with: of a replaced file both, as calls under way end on the old one. */
export const textsOf = (model: string): readonly string[] =>
  model === 'quay/first' || model === 'quay/second'
    ? [expectedText('big', LARGE[model]).text]
    : [expectedText('chat-a').text, expectedText('chat-b').text];

/** Everything that runs for this home. */
export const processesOfHome = (home: string): readonly number[] => [
  ...processes()
    .filter((p) => p.command.includes(home))
    .map((p) => p.pid),
  ...markedProcesses(join(home, 'engines')).map(({ pid }) => pid),
];
