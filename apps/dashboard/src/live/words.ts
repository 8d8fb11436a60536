import type { CallItem, DecisionItem, ResidentItem } from '#domain/wire/index.js';

/** What a thing is like just now: a colour, a sign and a word say the same. */
export type Tone = 'good' | 'busy' | 'leaving' | 'bad' | 'other';

/** State words, each with its tone. */
export interface Said {
  readonly tone: Tone;
  readonly word: string;
}

const LEAVING: Readonly<Record<string, string>> = {
  room: 'leaving: room is needed',
  idle: 'leaving: idle',
  operator: 'leaving: asked to',
  contract: 'leaving: loaded anew',
  artifact: 'leaving: its file changed',
  shutdown: 'leaving: shutdown',
};

export function residentState({ phase, leaving }: Pick<ResidentItem, 'phase' | 'leaving'>): Said {
  if (phase === 'ended') return { tone: 'other', word: 'gone' };
  if (leaving) return { tone: 'leaving', word: LEAVING[leaving.reason] ?? `leaving: ${leaving.reason}` };
  if (phase === 'ready') return { tone: 'good', word: 'ready' };
  return phase === 'loading' ? { tone: 'busy', word: 'loading' } : { tone: 'other', word: 'decided' };
}

const DECISIONS: Readonly<Record<DecisionItem['state'], Said>> = {
  open: { tone: 'busy', word: 'under way' },
  ready: { tone: 'good', word: 'ready' },
  failed: { tone: 'bad', word: 'load failed' },
  closed: { tone: 'other', word: 'closed' },
  refused: { tone: 'bad', word: 'refused' },
};
export const decisionState = ({ state }: Pick<DecisionItem, 'state'>): Said => DECISIONS[state];

const CALLS: Readonly<Record<CallItem['state'], Said>> = {
  running: { tone: 'busy', word: 'running' },
  completed: { tone: 'good', word: 'completed' },
  failed: { tone: 'bad', word: 'failed' },
  abandoned: { tone: 'other', word: 'abandoned' },
  refused: { tone: 'bad', word: 'refused' },
};
export const callState = ({ state }: Pick<CallItem, 'state'>): Said => CALLS[state];

/** Calls that resolve to nothing are kept under this key. */
export const modelName = (key: string | undefined): string =>
  key === undefined ? 'unknown model' : key === '~unresolved' ? 'no such model' : key;
