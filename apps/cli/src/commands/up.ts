import { parseArgs } from '../args.js';
import { loadSettings } from '../settings/load.js';
import { printConfig, printedSettings, settingsHelp } from '../settings/print.js';
import { UsageError } from '../usage-error.js';
import { type Command, exit, flagOn, SETTING_FLAGS } from './command.js';

export const up: Command = {
  name: 'up',
  usage: 'up [flags]',
  summary: 'start everything on this machine',
  details: [
    'Starts the event log, Postgres, the projector, the worker agent and the api, and stops them in order at Ctrl-C.',
    '',
    '  --print-config           show each setting and where it came from, and end (--json for programs)',
    '  --verbose                show what the processes write into their logs',
    '  --config FILE            read this file instead of berth.yaml in the home folder',
    '',
    settingsHelp(),
  ].join('\n'),
  group: 'start',
  run: async (argv) => {
    const args = parseArgs(
      argv,
      { ...SETTING_FLAGS, 'print-config': 'switch', verbose: 'switch', json: 'switch' },
      'up',
    );
    if (args.words.length > 0) throw new UsageError(`\`berth up\` takes no "${args.words[0] ?? ''}"`);
    const settings = loadSettings(args.flags);
    if (flagOn(args, 'print-config')) {
      console.log(
        flagOn(args, 'json') ? JSON.stringify(printedSettings(settings), null, 2) : printConfig(settings),
      );
      return exit(0);
    }
    const { runUp } = await import('../up/run-up.js');
    return exit(await runUp({ settings, verbose: flagOn(args, 'verbose') }));
  },
};
