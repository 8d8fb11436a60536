import { parseArgs } from '../args.js';
import { loadSettings } from '../settings/load.js';
import { settingsEnvironment } from '../settings/resolve.js';
import { runningPostgres } from '../up/postgres/running.js';
import { UsageError } from '../usage-error.js';
import { type Command, flagOn, type Outcome, SETTING_FLAGS } from './command.js';

const OWN_SWITCHES = ['verify', 'facts', 'json'] as const;

/** The views are folded by the projector's code; this finds the log and the database of a Berth that runs. */
export const replay: Command = {
  name: 'replay',
  usage: 'replay [--verify | --facts] [--json]',
  summary: 'fold every view again from the event log, or prove that they are right',
  details: [
    'Folds the whole log into fresh tables beside the live ones and swaps them in one step, while Berth goes on.',
    '--verify  fold beside and name every row that differs; the live views are not touched. 1 when one does',
    '--facts   derive medians, sizes, speeds and accuracy again, and list what decisions had used otherwise',
    '--json    one object a line, for programs',
    'Berth must run, or EVENTSTORE_URL and DATABASE_URL name its servers; --home finds another one.',
  ].join('\n'),
  group: 'other',
  run: (argv) => {
    const args = parseArgs(
      argv,
      { ...SETTING_FLAGS, verify: 'switch', facts: 'switch', json: 'switch' },
      'replay',
    );
    if (args.words.length > 0) throw new UsageError(`\`berth replay\` takes no "${args.words[0] ?? ''}"`);
    if (flagOn(args, 'verify') && flagOn(args, 'facts'))
      throw new UsageError('--verify and --facts are two commands; give one of them');
    const settings = Object.fromEntries(
      Object.entries(args.flags).filter(([name]) => !OWN_SWITCHES.some((own) => own === name)),
    );
    const env = settingsEnvironment(loadSettings(settings));
    const found = env['DATABASE_URL'] ?? runningPostgres(env['BERTH_HOME'] ?? '');
    return Promise.resolve<Outcome>({
      kind: 'run',
      main: 'apps/projector/src/replay/main.js',
      args: OWN_SWITCHES.filter((name) => flagOn(args, name)).map((name) => `--${name}`),
      env: { ...env, ...(found === undefined ? {} : { DATABASE_URL: found }) },
    });
  },
};
