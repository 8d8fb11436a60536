import { AdminClient, AdminRefusal } from '../client/admin-client.js';
import { addressOf } from '../client/address.js';
import { findCall } from '../client/find-call.js';
import type {
  AccuracyRow,
  FolderRow,
  Health,
  ModelRow,
  QueueRow,
  ResidentRow,
  WorkerRow,
} from '../client/rows.js';
import { parseArgs, type ParsedArgs } from '../args.js';
import { loadSettings } from '../settings/load.js';
import { UsageError } from '../usage-error.js';
import { accuracyText } from '../views/accuracy-view.js';
import { modelsText } from '../views/models-view.js';
import { statusText } from '../views/status-view.js';
import { type Command, exit, flagOn, flagText } from './command.js';

export const READER_FLAGS = {
  url: 'value',
  json: 'switch',
  home: 'value',
  port: 'value',
  host: 'value',
  config: 'value',
} as const;
export const READER_FLAGS_HELP = [
  "  --url URL                the address of Berth, when it is not this machine's",
  '  --json                   everything, for programs',
  '  --home DIR, --port N, --host HOST, --config FILE: as for `berth up`, to find its address',
].join('\n');

/** The running Berth that the flags of a reader name. A command's own flags may be called like a setting: they are not one. */
export function clientOf(args: ParsedArgs): AdminClient {
  const settings = Object.fromEntries(
    Object.entries(args.flags).filter(([name]) => Object.hasOwn(READER_FLAGS, name)),
  );
  return new AdminClient(addressOf(loadSettings(settings), flagText(args, 'url')));
}

/** A command that asks a running Berth and prints what it says. */
const reader = (
  command: Omit<Command, 'run'>,
  words: number,
  switches: Readonly<Record<string, 'switch'>>,
  read: (client: AdminClient, args: ParsedArgs) => Promise<{ text: string; json: unknown }>,
): Command => ({
  ...command,
  details: [...(command.details === undefined ? [] : [command.details, '']), READER_FLAGS_HELP].join('\n'),
  run: async (argv) => {
    const args = parseArgs(argv, { ...READER_FLAGS, ...switches }, command.name);
    if (args.words.length !== words) throw new UsageError(`Write \`berth ${command.usage}\``);
    const client = clientOf(args);
    const { text, json } = await read(client, args);
    console.log(flagOn(args, 'json') ? JSON.stringify(json, null, 2) : text);
    return exit(0);
  },
});

const status = reader(
  {
    name: 'status',
    usage: 'status [--json]',
    summary: 'workers and their room, what is loaded, what waits, what is wrong',
    group: 'look',
  },
  0,
  {},
  async (client) => {
    const health = await client.get<Health>('/health');
    const [views, queue] = await Promise.all([
      readViews(client),
      client.get<{ items: QueueRow[] }>('/admin/queue'),
    ]);
    return {
      text: statusText({ address: client.address, health, views, queue: queue.items, nowMs: Date.now() }),
      json: {
        address: client.address,
        health,
        ...(typeof views === 'string' ? { views } : views),
        queue: queue.items,
      },
    };
  },
);

/** The views may be away while everything else works; then status says so and shows the rest. */
async function readViews(client: AdminClient) {
  try {
    const [workers, residents, storage] = await Promise.all([
      client.list<WorkerRow>('/admin/workers'),
      client.list<ResidentRow>('/admin/residents'),
      client.get<{ folders: readonly FolderRow[] }>('/admin/storage'),
    ]);
    return { workers, residents, folders: storage.folders };
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 503) return error.message;
    throw error;
  }
}

const models = reader(
  {
    name: 'models',
    usage: 'models [--accuracy] [--json]',
    summary: 'every model that can be called',
    details: '--accuracy: how far predicted sizes were from measured ones, by model, class and engine build',
    group: 'look',
  },
  0,
  { accuracy: 'switch' },
  async (client, args) => {
    if (flagOn(args, 'accuracy')) {
      const rows = await client.list<AccuracyRow>('/admin/accuracy', 10_000);
      return { text: accuracyText(rows), json: rows };
    }
    const models = await client.list<ModelRow>('/admin/models', 10_000);
    return { text: modelsText(models), json: models };
  },
);

const explain = reader(
  {
    name: 'explain',
    usage: 'explain CALL [--json]',
    summary: 'why a call was placed as it was, and what became of it',
    details: 'CALL is the id in `x-berth-call`, the start of one, or `last`.',
    group: 'look',
  },
  1,
  {},
  async (client, args) => {
    const callId = await findCall(client, args.words[0] ?? '');
    const answer = await client.get<{ text: string }>(`/admin/calls/${encodeURIComponent(callId)}/explain`);
    return { text: answer.text, json: answer };
  },
);

/** The commands that read the admin API. */
export const READERS: readonly Command[] = [status, models, explain];
