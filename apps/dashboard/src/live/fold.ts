import type {
  LiveChange,
  LiveFrame,
  LiveItems,
  LiveTopic,
  MomentItems,
  MomentTopic,
} from '#domain/wire/index.js';

/** What the page knows from `/live`. Never changed: each frame gives another. */
export interface LiveState {
  readonly topics: { readonly [T in LiveTopic]: ReadonlyMap<string, LiveItems[T]> };
  readonly moments: { readonly [T in MomentTopic]: readonly MomentItems[T][] };
  /** Topics whose snapshot has come: the others are not empty but unknown. */
  readonly known: ReadonlySet<LiveTopic | MomentTopic>;
  /** Topics that were told whole up to `position`; a line that breaks between snapshots leaves some of them out. */
  readonly complete: ReadonlySet<LiveTopic>;
  /** Everything of the complete topics up to here was told. */
  readonly position?: string;
}

export const NOTHING: LiveState = {
  topics: {
    residents: new Map(),
    devices: new Map(),
    calls: new Map(),
    decisions: new Map(),
    evictions: new Map(),
    pulls: new Map(),
    operator: new Map(),
    models: new Map(),
  },
  moments: { queue: [], activity: [], readings: [] },
  known: new Set(),
  complete: new Set(),
};

/** Where the next connection may go on; undefined when it has to begin with snapshots of the topics. */
export const sinceOf = (state: LiveState, topics: readonly string[]): string | undefined =>
  topics.every((topic) => !(topic in NOTHING.topics) || state.complete.has(topic as LiveTopic))
    ? state.position
    : undefined;

/** What of a list that only grows is kept; what has not ended is kept always. */
export const KEPT = 200;

type KeyOf = { readonly [T in LiveTopic]: (item: LiveItems[T]) => string };
const KEYS: KeyOf = {
  residents: (item) => item.residentId,
  devices: (item) => `${item.workerId} ${item.deviceId}`,
  calls: (item) => item.callId,
  decisions: (item) => item.decisionId,
  evictions: (item) => item.evictionId,
  pulls: (item) => item.pullId,
  operator: (item) => item.actionId,
  models: (item) => `${item.workerId} ${item.modelKey}`,
};

type IsOver = { readonly [T in LiveTopic]?: (item: LiveItems[T]) => boolean };
/** Of lists that grow: whether an item may make room for newer ones. */
const OVER: IsOver = {
  calls: (item) => item.state !== 'running',
  decisions: (item) => item.state !== 'open',
  evictions: (item) => item.state !== 'running',
  operator: (item) => item.state === 'done' || item.state === 'failed',
};

/** The state after a frame; the same object when the frame changes nothing that is shown. */
export function fold(state: LiveState, frame: LiveFrame): LiveState {
  switch (frame.type) {
    case 'snapshot':
      return withTopic(
        {
          ...state,
          known: new Set(state.known).add(frame.topic),
          complete: new Set(frame.position === state.position ? state.complete : []).add(frame.topic),
          position: frame.position,
        },
        frame.topic,
        snapshotOf(frame.topic, frame.items),
      );
    case 'changes':
      return { ...frame.changes.reduce(change, thawed(state, frame.changes)), position: frame.position };
    case 'moment':
      return {
        ...state,
        moments: { ...state.moments, [frame.topic]: frame.items },
        known: state.known.has(frame.topic) ? state.known : new Set(state.known).add(frame.topic),
      };
    case 'lagged':
    case 'beat':
      return { ...state, position: frame.position };
    case 'error':
      return state;
  }
}

function snapshotOf<T extends LiveTopic>(
  topic: T,
  items: readonly LiveItems[T][],
): Map<string, LiveItems[T]> {
  const keyOf: (item: LiveItems[T]) => string = KEYS[topic];
  return new Map(items.map((item) => [keyOf(item), item]));
}

/** One copy of each topic that a frame touches, which its changes are then written into. */
function thawed(state: LiveState, changes: readonly LiveChange[]): LiveState {
  const touched = new Set(changes.map(({ topic }) => topic));
  const copies = [...touched].map((topic) => [topic, new Map<string, unknown>(state.topics[topic])] as const);
  return { ...state, topics: { ...state.topics, ...Object.fromEntries(copies) } };
}

function change(state: LiveState, { topic, item }: LiveChange): LiveState {
  apply(state, topic, item);
  return state;
}

function apply<T extends LiveTopic>(state: LiveState, topic: T, item: LiveItems[T]): void {
  const keyOf: (item: LiveItems[T]) => string = KEYS[topic];
  const map = state.topics[topic] as Map<string, LiveItems[T]>;
  const key = keyOf(item);
  if (isGone(topic, item)) {
    map.delete(key);
    return;
  }
  map.set(key, item);
  const over: ((item: LiveItems[T]) => boolean) | undefined = OVER[topic];
  if (over && map.size > KEPT) forgetOldest(map, over);
}

/** A resident that has ended is told once more, and is then in no snapshot. */
function isGone(topic: LiveTopic, item: LiveItems[LiveTopic]): boolean {
  if (topic === 'residents') return 'phase' in item && item.phase === 'ended';
  return topic === 'models' && 'gone' in item && item.gone;
}

/** Keys are kept in the order in which they came, so the first that is over is the oldest. */
function forgetOldest<I>(map: Map<string, I>, over: (item: I) => boolean): void {
  for (const [key, item] of map) {
    if (!over(item)) continue;
    map.delete(key);
    return;
  }
}

function withTopic<T extends LiveTopic>(
  state: LiveState,
  topic: T,
  items: ReadonlyMap<string, LiveItems[T]>,
): LiveState {
  return { ...state, topics: { ...state.topics, [topic]: items } };
}
