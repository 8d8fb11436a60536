import { type Command } from './command.js';

/** The commands that read the admin API. */
export const READERS: readonly Command[] = [];
