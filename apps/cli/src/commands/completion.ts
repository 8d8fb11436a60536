import { UsageError } from '../usage-error.js';
import { type Command, exit } from './command.js';
import { OPERATOR_TASKS } from './operator.js';
import { LOG_TASKS } from './processes.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** What may follow a command, beside flags. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  keys: ['list', 'create', 'revoke'],
  settings: ['list', 'set', 'unset'],
  operator: OPERATOR_TASKS,
  log: LOG_TASKS,
  explain: ['last'],
  completion: SHELLS,
};

/** Flags that a command names in its own help, and --help. */
const flagsOf = ({ usage, details = '' }: Command): readonly string[] => [
  ...new Set([...`${usage} ${details}`.matchAll(/--[a-z][a-z-]+/g)].map(([flag]) => flag)),
  '--help',
];

const wordsOf = (command: Command, all: readonly Command[]): readonly string[] => [
  ...(command.name === 'help' ? all.map(({ name }) => name) : (WORDS[command.name] ?? [])),
  ...flagsOf(command),
];

function bash(commands: readonly Command[]): string {
  const cases = commands.map(
    (command) => `    ${command.name}) words="${wordsOf(command, commands).join(' ')}" ;;`,
  );
  return [
    '_berth() {',
    '  local words cur="${COMP_WORDS[COMP_CWORD]}"',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${commands.map(({ name }) => name).join(' ')}"`,
    '  else case "${COMP_WORDS[1]}" in',
    ...cases,
    '  esac; fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '}',
    'complete -o default -F _berth berth',
  ].join('\n');
}

function fish(commands: readonly Command[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  return commands
    .flatMap((command) => [
      `complete -c berth -n __fish_use_subcommand -a ${command.name} -d ${quoted(command.summary)}`,
      `complete -c berth -n ${quoted(`__fish_seen_subcommand_from ${command.name}`)} -a ${quoted(wordsOf(command, commands).join(' '))}`,
    ])
    .join('\n');
}

const SCRIPTS: Readonly<Record<Shell, (commands: readonly Command[]) => string>> = {
  bash,
  zsh: (commands) =>
    ['#compdef berth', 'autoload -U +X bashcompinit && bashcompinit', bash(commands)].join('\n'),
  fish,
};

/** Prints a script that a shell reads, made from the table of commands. */
export const completion = (commands: () => readonly Command[]): Command => ({
  name: 'completion',
  usage: 'completion bash|zsh|fish',
  summary: 'print what a shell needs to complete commands and flags',
  details: [
    'bash: source <(berth completion bash)',
    'zsh:  source <(berth completion zsh)',
    'fish: berth completion fish | source',
  ].join('\n'),
  group: 'other',
  run: (argv) => {
    const [shell, ...more] = argv;
    if (!SHELLS.includes(shell as Shell) || more.length > 0)
      throw new UsageError(`Write \`berth completion ${SHELLS.join('|')}\``);
    console.log(SCRIPTS[shell as Shell](commands()));
    return Promise.resolve(exit(0));
  },
});
