import { parseArgs, takeFlags } from '../args.js';
import { loadSettings } from '../settings/load.js';
import { settingsEnvironment } from '../settings/resolve.js';
import { didYouMean } from '../nearest.js';
import { UsageError } from '../usage-error.js';
import { type Command, type Outcome, SETTING_FLAGS } from './command.js';

/** A process of the stack on its own, for systemd and containers: its settings are flags, environment or berth.yaml. */
const process_ = (name: string, main: string, summary: string, details: string): Command => ({
  name,
  usage: `${name} [flags]`,
  summary,
  details,
  group: 'processes',
  run: (argv) => {
    const args = parseArgs(argv, SETTING_FLAGS, name);
    if (args.words.length > 0) throw new UsageError(`\`berth ${name}\` takes no "${args.words[0] ?? ''}"`);
    const env = settingsEnvironment(loadSettings(args.flags));
    return Promise.resolve<Outcome>({ kind: 'run', main, args: [], env });
  },
});

/** A program whose arguments are its own; only the named settings may stand among them as flags. */
const program = (command: Omit<Command, 'run'>, main: string, settings: readonly string[]): Command => ({
  ...command,
  run: (argv) => {
    const { flags, rest } = takeFlags(argv, settings);
    const env = settingsEnvironment(loadSettings(flags));
    return Promise.resolve<Outcome>({ kind: 'run', main, args: rest, env });
  },
});

export const LOG_TASKS = ['check', 'verify', 'backup', 'restore', 'scavenge'];

/** Tasks on the log: its invariants are checked through any server, the rest is the embedded node's own. */
const log: Command = {
  name: 'log',
  usage: 'log check|verify|backup FOLDER|restore FOLDER|scavenge',
  summary: 'check, copy, restore or compact the event log',
  details: [
    'check [--at-rest]  the invariants that every log of Berth must satisfy; at rest: nothing may be left open',
    'verify             order, gaps and structure of the embedded log',
    'backup FOLDER      copy the embedded log while it is in use',
    'restore FOLDER     put a backup where no log is; Berth must not run',
    'scavenge           remove what retention hides',
    'The embedded log is that of BERTH_HOME; --data DIR names another.',
  ].join('\n'),
  group: 'other',
  run: (argv) => {
    const { flags, rest } = takeFlags(argv, ['home', 'eventstore-url', 'config']);
    const env = settingsEnvironment(loadSettings(flags));
    const [task, ...args] = rest;
    const isCheck = task === 'check';
    if (task === undefined || !LOG_TASKS.includes(task)) {
      throw new UsageError(
        `\`berth log\` takes one of ${LOG_TASKS.join(', ')}${didYouMean(task ?? '', LOG_TASKS)}`,
      );
    }
    return Promise.resolve<Outcome>({
      kind: 'run',
      main: isCheck ? 'libs/events/src/check/command.js' : 'apps/event-node/src/log-command.js',
      args: isCheck ? args : rest,
      env,
    });
  },
};

export const PROCESSES: readonly Command[] = [
  process_(
    'api',
    'apps/api/src/main.js',
    'the front door alone',
    'Needs EVENTSTORE_URL; DATABASE_URL for the views.',
  ),
  process_(
    'projector',
    'apps/projector/src/main.js',
    'the views alone',
    'Needs EVENTSTORE_URL and DATABASE_URL.',
  ),
  process_(
    'agent',
    'apps/worker-agent/src/main.js',
    'the worker agent of this machine alone',
    'Needs EVENTSTORE_URL.',
  ),
  program(
    {
      name: 'event-node',
      usage: 'event-node --port N --data DIR [--host H] [--insecure]',
      summary: 'the embedded event log alone',
      details: [
        '--port 0 takes a free one; --data holds the log, its certificates and credentials.',
        '--insecure speaks without TLS and credentials, on loopback only.',
      ].join('\n'),
      group: 'processes',
    },
    'apps/event-node/src/main.js',
    [],
  ),
  program(
    {
      name: 'make-model',
      usage: 'make-model PRESET FILE [--seed N] [--size-mb N] [--context N] [--force]',
      summary: 'write a small real GGUF whose text is known in advance',
      details: [
        'Presets: chat-a, chat-b, endless, think, big, moe, hybrid, windowed, embed, rerank, smoke.',
        '--size-mb sizes big and moe, --context sets the trained context, --force overwrites.',
      ].join('\n'),
      group: 'models',
    },
    'apps/worker-agent/src/make-model/main.js',
    [],
  ),
  log,
];
