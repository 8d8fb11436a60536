/** Name of the lock that a replay of some views holds in Postgres for as long as it runs. */
export const replayLock = (live: string): string => `berth replay ${live}`;
