import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';
import { bench } from './commands/bench.js';
import { type Command, type Outcome, exit } from './commands/command.js';
import { commandHelp, help } from './commands/help.js';
import { completion } from './commands/completion.js';
import { LISTS } from './commands/lists.js';
import { MANAGERS } from './commands/managers.js';
import { operator } from './commands/operator.js';
import { PROCESSES } from './commands/processes.js';
import { pull } from './commands/pull.js';
import { READERS } from './commands/readers.js';
import { replay } from './commands/replay.js';
import { up } from './commands/up.js';
import { wrapped } from './list-table.js';
import { didYouMean } from './nearest.js';
import { whatIf } from './commands/what-if.js';
import { UsageError } from './usage-error.js';

const COMMANDS: readonly Command[] = [
  up,
  ...READERS,
  ...LISTS,
  ...MANAGERS,
  operator,
  pull,
  ...PROCESSES,
  replay,
  whatIf,
  bench,
  completion(() => COMMANDS),
  help(() => COMMANDS),
];

/**
 * Runs one command line. Exit codes: 0 done, 1 it did not work, 2 the command line or a setting cannot be used.
 * What is to become a process of its own is returned, not run: the command line imports no app.
 */
export async function main(argv: readonly string[]): Promise<Outcome> {
  const [name, ...rest] = argv;
  try {
    if (name === '--version' || name === '-v' || name === 'version') {
      console.log(version());
      return exit(0);
    }
    const wanted = name === undefined || name === '--help' || name === '-h' ? 'help' : name;
    const command = COMMANDS.find((known) => known.name === wanted);
    if (command === undefined) {
      const names = COMMANDS.map((known) => known.name);
      throw new UsageError(
        `There is no command "${wanted}"${didYouMean(wanted, names) || '; `berth help` lists them'}`,
      );
    }
    if (rest.includes('--help') || rest.includes('-h')) {
      console.log(commandHelp(command));
      return exit(0);
    }
    return await command.run(rest);
  } catch (error) {
    const message = sentenceOf(error, name);
    console.error(wrapped(`berth: ${message}`));
    await tellSupervisor(message);
    return exit(error instanceof UsageError ? 2 : 1);
  }
}

/** What went wrong; of a command line that cannot be used, always with where it stands how it is written. */
function sentenceOf(error: unknown, name: string | undefined): string {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof UsageError) || message.includes('`berth')) return message;
  const known = COMMANDS.some((command) => command.name === name);
  return `${message.replace(/\.$/, '')}; see \`berth help${known ? ` ${name ?? ''}` : ''}\``;
}

/** A supervisor that started this command shows the sentence instead of an exit code. */
function tellSupervisor(message: string): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send({ berth: 'failed', message }, () => resolve());
  });
}

export function version(): string {
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
