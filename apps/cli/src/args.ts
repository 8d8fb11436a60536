import { didYouMean } from './nearest.js';
import { UsageError } from './usage-error.js';

/** Each flag without its dashes: whether it takes a value. */
export type FlagTable = Readonly<Record<string, 'value' | 'switch'>>;

export interface ParsedArgs {
  readonly flags: Readonly<Record<string, string | true>>;
  readonly words: readonly string[];
}

/**
 * `--name value`, `--name=value` and `--switch`; `--` ends the flags.
 * @throws UsageError for an unknown flag (naming the nearest), a missing value or one too many, or a flag given twice.
 */
export function parseArgs(argv: readonly string[], table: FlagTable, command: string): ParsedArgs {
  const flags: Record<string, string | true> = {};
  const words: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] ?? '';
    if (arg === '--') {
      words.push(...argv.slice(i + 1));
      break;
    }
    if (!arg.startsWith('-') || arg === '-') {
      words.push(arg);
      continue;
    }
    const equals = arg.indexOf('=');
    const written = equals < 0 ? arg : arg.slice(0, equals);
    const name = written.replace(/^--/, '');
    const kind = Object.hasOwn(table, name) ? table[name] : undefined;
    if (kind === undefined || !written.startsWith('--')) {
      const near = didYouMean(
        written,
        Object.keys(table).map((flag) => `--${flag}`),
      );
      throw new UsageError(
        `${written} is no flag of \`berth ${command}\`${near || `; see \`berth help ${command}\``}`,
      );
    }
    if (name in flags) throw new UsageError(`--${name} is given twice`);
    if (kind === 'switch') {
      if (equals >= 0) throw new UsageError(`--${name} takes no value`);
      flags[name] = true;
      continue;
    }
    const value = equals >= 0 ? arg.slice(equals + 1) : argv[++i];
    if (value === undefined || value === '') throw new UsageError(`--${name} needs a value`);
    flags[name] = value;
  }
  return { flags, words };
}

/** Takes only the named flags (all with a value) out of the arguments and leaves the rest as it stands. */
export function takeFlags(
  argv: readonly string[],
  names: readonly string[],
): { readonly flags: Readonly<Record<string, string>>; readonly rest: readonly string[] } {
  const flags: Record<string, string> = {};
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] ?? '';
    const [written, ...more] = arg.split('=');
    const name = names.find((known) => written === `--${known}`);
    if (name === undefined) {
      rest.push(arg);
      continue;
    }
    const value = more.length > 0 ? more.join('=') : argv[++i];
    if (value === undefined || value === '') throw new UsageError(`--${name} needs a value`);
    flags[name] = value;
  }
  return { flags, rest };
}

/** JSON where it is some, else the word itself: `q8_0` needs no quotes. */
export function valueIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
