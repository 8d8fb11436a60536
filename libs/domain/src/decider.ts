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
