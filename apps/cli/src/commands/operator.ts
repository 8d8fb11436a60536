import { setTimeout as pause } from 'node:timers/promises';
import type { OperatorAccepted, OperatorActionRequest, OperatorItem } from '#domain/wire/index.js';
import { parseArgs } from '../args.js';
import type { AdminClient } from '../client/admin-client.js';
import { listTable, wrapped } from '../list-table.js';
import { UsageError } from '../usage-error.js';
import { didYouMean } from '../nearest.js';
import { type Command, exit, flagOn, flagText } from './command.js';
import { clientOf, READER_FLAGS, READER_FLAGS_HELP } from './readers.js';

const ACTIONS = {
  evict: 'a resident',
  'evict-all': undefined,
  load: 'a model',
  'refresh-models': undefined,
  'remove-model': 'a model',
  'restart-agent': undefined,
} as const satisfies Record<OperatorActionRequest['action'], string | undefined>;

export const OPERATOR_TASKS = ['list', ...Object.keys(ACTIONS)];
const FIRST_LOOK_MS = 100;
const LATER_LOOKS_MS = 1000;
const MOST_LOOKED_MS = 700_000;

const isAction = (word: string): word is keyof typeof ACTIONS => Object.hasOwn(ACTIONS, word);
const hasEnded = ({ state }: OperatorItem): boolean => state === 'done' || state === 'failed';

/** Has a worker do something, and waits for its end: exit code 0 when it was done, 1 when it failed. */
export const operator: Command = {
  name: 'operator',
  usage: 'operator [list | ACTION [TARGET]]',
  summary: 'unload, load and remove models, look for new ones, restart the agent',
  details: [
    'list             what was asked for, newest first',
    'evict RESIDENT   unload it once its calls have ended',
    'evict-all        unload everything that serves on a worker',
    'load MODEL       load it now; options behind an @, as in a call: load chat-a@ctx=8192',
    'refresh-models   look at the folders of models now',
    'remove-model M   delete its files; refused while it is loaded or waited for',
    'restart-agent    start the agent again; engines and calls go on',
    "  --worker W     the worker's name or id, where more than one could do it",
    '  --no-wait      do not wait for the end',
    READER_FLAGS_HELP,
  ].join('\n'),
  group: 'models',
  run: async (argv) => {
    const flags = { ...READER_FLAGS, worker: 'value', 'no-wait': 'switch' } as const;
    const args = parseArgs(argv, flags, 'operator');
    const [task = 'list', target, ...more] = args.words;
    if (more.length > 0) throw new UsageError('Write `berth operator [list | ACTION [TARGET]]`');
    const client = clientOf(args);
    const json = flagOn(args, 'json');
    if (task === 'list') {
      const rows = await client.list<OperatorItem>('/admin/operator/actions', 50);
      console.log(json ? JSON.stringify(rows, null, 2) : listText(rows));
      return exit(0);
    }
    if (!isAction(task)) {
      throw new UsageError(
        `\`berth operator\` takes one of ${OPERATOR_TASKS.join(', ')}${didYouMean(task, OPERATOR_TASKS)}`,
      );
    }
    const wants = ACTIONS[task];
    if ((wants === undefined) !== (target === undefined)) {
      const says = wants === undefined ? 'takes no target' : `needs ${wants}`;
      throw new UsageError(`\`berth operator ${task}\` ${says}; \`berth help operator\` says more`);
    }
    const worker = flagText(args, 'worker');
    const asked: OperatorActionRequest = {
      action: task,
      ...(worker === undefined ? {} : { worker }),
      ...(target === undefined ? {} : { target }),
    };
    const accepted = await client.send<OperatorAccepted>('POST', '/admin/operator/actions', asked);
    const end = flagOn(args, 'no-wait') || hasEnded(accepted) ? accepted : await endOf(client, accepted);
    if (json) console.log(JSON.stringify(end, null, 2));
    else console.log(wrapped(hasEnded(end) ? (end.result ?? end.state) : stillGoing(end)));
    return exit(end.state === 'failed' ? 1 : 0);
  },
};

/** Asks until it has ended, or for as long as any action may take. */
async function endOf(client: AdminClient, accepted: OperatorAccepted): Promise<OperatorItem> {
  const path = `/admin/operator/actions/${encodeURIComponent(accepted.actionId)}`;
  const wait = accepted.position === undefined ? '' : `?wait=${accepted.position}`;
  const until = performance.now() + MOST_LOOKED_MS;
  let every = FIRST_LOOK_MS;
  for (;;) {
    const action = await client.get<OperatorItem>(`${path}${wait}`);
    if (hasEnded(action) || performance.now() > until) return action;
    await pause(every);
    every = Math.min(LATER_LOOKS_MS, every * 1.5);
  }
}

const stillGoing = ({ actionId, state }: OperatorItem): string =>
  `It is ${state}. \`berth operator list\` shows how it ends (${actionId}).`;

function listText(rows: readonly OperatorItem[]): string {
  if (rows.length === 0) return 'Nothing was asked of a worker yet. `berth help operator` lists what can be.';
  return listTable(
    ['asked', 'action', 'target', 'state', 'result'],
    rows.map((row) => [
      row.requestedAt?.slice(0, 19).replace('T', ' ') ?? '',
      row.action ?? '',
      row.target ?? '',
      row.state,
      row.result ?? '',
    ]),
    4,
  );
}
