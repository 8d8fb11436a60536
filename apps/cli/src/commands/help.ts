import { parseArgs } from '../args.js';
import { settingsHelp, settingsReference } from '../settings/print.js';
import { wrapped } from '../list-table.js';
import { columnsOf } from '../table.js';
import { UsageError } from '../usage-error.js';
import { didYouMean } from '../nearest.js';
import { type Command, exit, flagOn } from './command.js';

const GROUPS = {
  start: 'Start',
  look: 'Look',
  models: 'Models',
  processes: 'Processes, each on its own',
  other: 'Other',
} as const satisfies Record<Command['group'], string>;

/** `berth help`, `berth help COMMAND`, `berth help settings`. */
export const help = (commands: () => readonly Command[]): Command => ({
  name: 'help',
  usage: 'help [COMMAND | settings]',
  summary: 'this page, or more about one command or the settings',
  group: 'other',
  run: (argv) => {
    const args = parseArgs(argv, { markdown: 'switch' }, 'help');
    const [topic] = args.words;
    if (topic === undefined) console.log(overview(commands()));
    else if (topic === 'settings') {
      console.log(flagOn(args, 'markdown') ? settingsReference() : settingsHelp());
    } else {
      const command = commands().find(({ name }) => name === topic);
      if (command === undefined) {
        throw new UsageError(
          `There is no help on "${topic}"${didYouMean(topic, ['settings', ...commands().map(({ name }) => name)])}`,
        );
      }
      console.log(commandHelp(command));
    }
    return Promise.resolve(exit(0));
  },
});

export const commandHelp = (command: Command): string =>
  [
    `berth ${command.usage}`,
    '',
    `${command.summary[0]?.toUpperCase() ?? ''}${command.summary.slice(1)}.`,
    ...(command.details === undefined ? [] : ['', command.details]),
  ]
    .flatMap((part) => part.split('\n'))
    .map(fitted)
    .join('\n');

/** What is too long goes on below where its text begins, behind the flag that it explains. */
function fitted(line: string): string {
  const columns = columnsOf();
  if (line.length <= columns) return line;
  const column = /^ +(?:--\S+(?: \S+)? {2,})?/.exec(line)?.[0].length ?? 0;
  const text = wrapped(line.slice(column), columns - column);
  return `${line.slice(0, column)}${text.replaceAll('\n', `\n${' '.repeat(column)}`)}`;
}

function overview(commands: readonly Command[]): string {
  const parts = ['Berth: one OpenAI-compatible address for every model on your own machines.'];
  for (const [group, title] of Object.entries(GROUPS)) {
    const lines = commands
      .filter((command) => command.group === group)
      .map(({ usage, summary }) =>
        usage.length > 30 ? `  ${usage}\n  ${''.padEnd(30)} ${summary}` : `  ${usage.padEnd(30)} ${summary}`,
      );
    if (lines.length > 0) parts.push(`${title}\n${lines.join('\n')}`);
  }
  parts.push('`berth help COMMAND` says more; `berth help settings` lists every setting.');
  return parts.join('\n\n');
}
