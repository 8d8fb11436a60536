/**
 * What the management API and `/live` say, for whoever reads it: the dashboard, the command line, other programs.
 * Types alone, so that a browser may import them. Every field that is unknown is left out; none is null.
 */
export type * from './live.js';
export type * from './operator.js';
export type * from './rows.js';
export type * from './replay.js';
export type * from './reports.js';
export type * from './what-if.js';
