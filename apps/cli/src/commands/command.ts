import type { FlagTable, ParsedArgs } from '../args.js';
import { settingNames } from '../settings/table.js';

/** What `bin/berth` does next: end, or become one of the processes. */
export type Outcome =
  | { readonly kind: 'exit'; readonly code: number }
  | {
      readonly kind: 'run';
      /** Below `dist`; runs when it is imported. */
      readonly main: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    };

export interface Command {
  readonly name: string;
  /** `explain CALL`: what follows `berth`. */
  readonly usage: string;
  readonly summary: string;
  /** More for `berth help NAME`. */
  readonly details?: string;
  readonly group: 'start' | 'look' | 'models' | 'processes' | 'other';
  readonly run: (argv: readonly string[]) => Promise<Outcome>;
}

export const exit = (code: number): Outcome => ({ kind: 'exit', code });

/** The flags that every setting has, and the one that names the file. */
export const SETTING_FLAGS: FlagTable = {
  ...Object.fromEntries(settingNames.map((name) => [name, 'value' as const])),
  config: 'value',
};

export const flagOn = (args: ParsedArgs, name: string): boolean => args.flags[name] === true;
export const flagText = (args: ParsedArgs, name: string): string | undefined => {
  const value = args.flags[name];
  return typeof value === 'string' ? value : undefined;
};
