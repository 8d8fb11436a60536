import type { Recorded } from './events/envelope.js';

/**
 * How one kind of stream is folded. `version` names the meaning of the state: whoever changes what `evolve` gives, or the
 * shape of the state, raises it, and every snapshot of the old one is passed over.
 */
export interface StreamFold<State, Event> {
  readonly version: number;
  readonly initial: () => State;
  /** Pure; an event at or below the state's revision changes nothing. */
  readonly evolve: (state: State, recorded: Recorded<Event>) => State;
}

/**
 * How many ids of a stream's last events its readers remember, so that a fact which a retry appended twice counts once.
 * Retries come soon. Every reader that passes over repetitions uses this number: what counts is a matter of the log
 * alone, not of who reads it or when it began.
 */
export const SEEN_IDS = 512;

/** The ids of a stream's last events with one more. */
export const remembering = (seen: readonly string[], id: string): readonly string[] =>
  seen.length < SEEN_IDS ? [...seen, id] : [...seen.slice(seen.length - SEEN_IDS + 1), id];

/**
 * Folds each event of a stream once: one at or below the state's revision changes nothing, and one whose id was seen (a
 * retry wrote it again) changes only the revision. `apply` keeps neither revision nor ids.
 */
export function onceEach<
  State extends { readonly revision: number; readonly seen: readonly string[] },
  Event,
>(apply: (state: State, recorded: Recorded<Event>) => State): StreamFold<State, Event>['evolve'] {
  return (state, recorded) => {
    const { id, revision } = recorded;
    if (revision <= state.revision) return state;
    if (state.seen.includes(id)) return { ...state, revision };
    return { ...apply(state, recorded), revision, seen: remembering(state.seen, id) };
  };
}
