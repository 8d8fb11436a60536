export const FRAMES = 200;
export const PACED_STREAMS = 64;
export const PACED_EVERY_MS = 10;

export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** A line of the summary: what was measured beside what is asked. */
export const verdict = (what: string, value: string, budget: string, holds: boolean): string =>
  `${what.padEnd(58)}${value.padStart(12)}   ${budget.padEnd(12)} ${holds ? 'yes' : 'NO'}`;
