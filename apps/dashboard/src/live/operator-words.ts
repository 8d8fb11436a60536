import type { OperatorItem } from '#domain/wire/index.js';

const ASKED: Readonly<Record<string, string>> = {
  evict: 'Eviction is asked for.',
  load: 'The load is asked for.',
};

/** What became of the last action on a target, as long as it is news. */
export function saidOf(items: Iterable<OperatorItem>, target: string, action: string): string | undefined {
  const last = [...items].filter((item) => item.target === target && item.action === action).at(-1);
  if (!last) return undefined;
  if (last.state === 'failed') return last.result ?? 'It failed, and no reason is recorded.';
  return last.state === 'done' ? undefined : ASKED[action];
}
