import type { AdminClient } from '../client/admin-client.js';
import { parseArgs, valueIn, type FlagTable, type ParsedArgs } from '../args.js';
import { table } from '../table.js';
import { UsageError } from '../usage-error.js';
import { type Command, exit, flagOn, flagText } from './command.js';
import { clientOf, READER_FLAGS, READER_FLAGS_HELP } from './readers.js';

interface Said {
  readonly text: string;
  readonly json: unknown;
}

interface KeyRow {
  readonly keyId: string;
  readonly name?: string;
  readonly scope?: string;
  readonly issuedAt?: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
}

interface Scope {
  readonly scope: string;
  readonly revision: number;
  readonly effective: Readonly<
    Record<string, { readonly value: unknown; readonly from: string; readonly scope?: string }>
  >;
}

/** A command that changes a running Berth: its first word says what is done. */
const manager = (
  command: Omit<Command, 'run'>,
  flags: FlagTable,
  tasks: Readonly<
    Record<string, (client: AdminClient, args: ParsedArgs, words: readonly string[]) => Promise<Said>>
  >,
): Command => ({
  ...command,
  details: [command.details ?? '', '', READER_FLAGS_HELP].join('\n'),
  run: async (argv) => {
    const args = parseArgs(argv, { ...READER_FLAGS, ...flags }, command.name);
    const [task = 'list', ...words] = args.words;
    const run = Object.hasOwn(tasks, task) ? tasks[task] : undefined;
    if (!run) throw new UsageError(`Write \`berth ${command.usage}\``);
    const client = clientOf(args);
    const { text, json } = await run(client, args, words);
    console.log(flagOn(args, 'json') ? JSON.stringify(json, null, 2) : text);
    return exit(0);
  },
});

function only(words: readonly string[], usage: string): string {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw new UsageError(`Write \`berth ${usage}\``);
  return word;
}

const stateOf = (key: KeyRow, nowMs: number): string => {
  if (key.revokedAt !== undefined) return `revoked ${key.revokedAt.slice(0, 10)}`;
  if (key.expiresAt === undefined) return 'good';
  return `${Date.parse(key.expiresAt) <= nowMs ? 'expired' : 'good until'} ${key.expiresAt.slice(0, 10)}`;
};

const keys = manager(
  {
    name: 'keys',
    usage: 'keys [list | create NAME | revoke ID]',
    summary: 'list, make and revoke API keys',
    details: [
      'create NAME  make a key and show it, this once',
      '  --admin            it manages Berth too; without, it is for calls to models',
      '  --expires TIME     ISO time after which it opens nothing, such as 2027-01-31T00:00:00Z',
      '  --models A,B       the only models that it opens, by their keys',
      'revoke ID    it stops at once',
      'From another machine, BERTH_KEY holds the admin key that these commands send.',
    ].join('\n'),
    group: 'other',
  },
  { admin: 'switch', expires: 'value', models: 'value' },
  {
    list: async (client) => {
      const rows = await client.list<KeyRow>('/admin/keys');
      const lines = rows.map((key) => [
        key.keyId,
        key.scope ?? '',
        key.issuedAt?.slice(0, 10) ?? '',
        stateOf(key, Date.now()),
        key.name ?? '',
      ]);
      const none = 'There is no key yet. `berth keys create NAME` makes one.';
      return {
        text: rows.length === 0 ? none : table(['id', 'scope', 'made', 'state', 'name'], lines),
        json: rows,
      };
    },
    create: async (client, args, words) => {
      const name = only(words, 'keys create NAME [--admin] [--expires TIME] [--models A,B]');
      const expiresAt = flagText(args, 'expires');
      const models = flagText(args, 'models')?.split(',');
      const created = await client.send<{ key: string; keyId: string }>('POST', '/admin/keys', {
        name,
        scope: flagOn(args, 'admin') ? 'admin' : 'use',
        ...(expiresAt === undefined ? {} : { expiresAt }),
        ...(models ? { models } : {}),
      });
      const text = `${created.key}\n\nIt is not shown again. \`berth keys revoke ${created.keyId}\` takes it back.`;
      return { text, json: created };
    },
    revoke: async (client, _args, words) => {
      const id = only(words, 'keys revoke ID');
      const done = await client.send('DELETE', `/admin/keys/${encodeURIComponent(id)}`);
      return { text: `The key ${id} opens nothing any more.`, json: done };
    },
  },
);

const settingsPath = (args: ParsedArgs): string =>
  `/admin/settings/${encodeURIComponent(flagText(args, 'scope') ?? 'fleet')}`;

const change = async (
  client: AdminClient,
  args: ParsedArgs,
  values: Record<string, unknown>,
): Promise<Said> => {
  const done = await client.send<{ scope: string; changed: readonly string[] }>('PATCH', settingsPath(args), {
    values,
  });
  const text =
    done.changed.length === 0
      ? 'Nothing changes: it stood so already.'
      : `Changed for ${done.scope}: ${done.changed.join(', ')}.`;
  return { text, json: done };
};

const settings = manager(
  {
    name: 'settings',
    usage: 'settings [list | set NAME VALUE | unset NAME]',
    summary: 'show and change the settings that live in the log, with where each value comes from',
    details: [
      'list            every setting, its value and the level that it comes from',
      'set NAME VALUE  VALUE is JSON, or a word',
      'unset NAME      inherit it again',
      '  --scope SCOPE    fleet, the id of a worker, or WORKER~MODEL; fleet when left out',
    ].join('\n'),
    group: 'other',
  },
  { scope: 'value' },
  {
    list: async (client, args) => {
      const scope = await client.get<Scope>(settingsPath(args));
      const lines = Object.entries(scope.effective).map(([name, { value, from }]) => [
        name,
        JSON.stringify(value),
        from,
      ]);
      return { text: table(['setting', 'value', 'from'], lines), json: scope };
    },
    set: (client, args, words) => {
      const [name, value, ...more] = words;
      if (name === undefined || value === undefined || more.length > 0)
        throw new UsageError('Write `berth settings set NAME VALUE [--scope SCOPE]`');
      return change(client, args, { [name]: valueIn(value) });
    },
    unset: (client, args, words) =>
      change(client, args, { [only(words, 'settings unset NAME [--scope SCOPE]')]: null }),
  },
);

/** The commands that change a running Berth. */
export const MANAGERS: readonly Command[] = [keys, settings];
