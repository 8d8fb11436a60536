import type { ReplayLine } from '#domain/wire/index.js';
import type { Difference } from './compare.js';

const SHOWN = 100;
const MOST_VALUE = 60;

const short = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length > MOST_VALUE ? `${text.slice(0, MOST_VALUE)}…` : text;
};

/** `calls call_id="c1": outcome is "failed", the log gives "completed"`. */
export function differenceText({ table, key, kind, columns }: Difference): string {
  const name = Object.entries(key)
    .map(([column, value]) => `${column}=${short(value)}`)
    .join(' ');
  if (kind === 'missing') return `${table} ${name}: missing, the log gives it`;
  if (kind === 'surplus') return `${table} ${name}: there, the log does not give it`;
  const changes = (columns ?? []).map(
    ({ column, live, folded }) => `${column} is ${short(live)}, the log gives ${short(folded)}`,
  );
  return `${table} ${name}: ${changes.join('; ')}`;
}

/** Says the first differences as they are found; the rest is counted. */
export function differencePrinter(json: boolean, say: (line: string) => void): (d: Difference) => void {
  let said = 0;
  return (difference) => {
    if (json) say(JSON.stringify({ difference } satisfies ReplayLine));
    else if (said < SHOWN) say(differenceText(difference));
    else if (said === SHOWN) say('More are counted and not shown; --json gives every one.');
    said += 1;
  };
}
