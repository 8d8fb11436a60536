import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { PullItem, WireWritten } from '#domain/wire/index.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import { takeFlags } from '../args.js';
import { AdminClient, AdminRefusal } from '../client/admin-client.js';
import { loadSettings } from '../settings/load.js';
import { settingsEnvironment } from '../settings/resolve.js';
import { homeHolder } from '../up/home-lock.js';
import { type Command, exit, type Outcome } from './command.js';

const MAIN = 'apps/worker-agent/src/pull/main.js';
const EVERY_MS = 500;

/** Through the agent while Berth runs, so that the log has it; else by itself. */
export const pull: Command = {
  name: 'pull',
  usage: 'pull OWNER/REPO[:FILE|:QUANT]',
  summary: 'fetch a model from Hugging Face',
  details: [
    'Goes on where it was cut off. While Berth runs, its agent fetches, and goes on when this command is ended.',
    'HF_TOKEN is used for private models, HF_ENDPOINT names another hub; with one of them, or with --local,',
    'this command fetches by itself.',
  ].join('\n'),
  group: 'models',
  run: async (argv) => {
    const local = argv.includes('--local');
    const { flags, rest } = takeFlags(
      argv.filter((arg) => arg !== '--local'),
      ['home', 'models', 'config'],
    );
    const settings = loadSettings(flags);
    const [source, ...more] = rest;
    const address = homeHolder(settings.values.home)?.address;
    const isOwn = ['HF_TOKEN', 'HF_ENDPOINT'].some((name) => (process.env[name] ?? '') !== '');
    const isPlain = source !== undefined && !source.startsWith('-') && more.length === 0;
    if (isPlain && address !== undefined && !local && !isOwn && flags['models'] === undefined) {
      const code = await throughAgent(new AdminClient(address), source);
      if (code !== undefined) return exit(code);
    }
    const env = settingsEnvironment(settings);
    if (isPlain && address !== undefined && flags['models'] === undefined) {
      const setting = await diskSetting(new AdminClient(address), settings.values.home);
      if (setting !== undefined) env['BERTH_DISK_SETTING'] = String(setting);
    }
    return { kind: 'run', main: MAIN, args: rest, env } satisfies Outcome;
  },
};

/** What an admin lets models take in the folder of the worker that runs on this home; the log has it, which is not read here. */
async function diskSetting(client: AdminClient, home: string): Promise<number | undefined> {
  try {
    const id = readFileSync(join(home, 'worker-id'), 'utf8').trim();
    const workers = await client.list<LimitedWorker>('/admin/workers');
    return workers.find(({ workerId }) => workerId === id)?.limits?.setting['disk'];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    console.error(`Whether an admin limits what models take on this disk could not be asked: ${why}`);
    return undefined;
  }
}

interface LimitedWorker {
  readonly workerId: string;
  readonly limits?: { readonly setting: Readonly<Record<string, number>> };
}

/** @returns the exit code; undefined when no agent can do it. */
async function throughAgent(client: AdminClient, source: string): Promise<number | undefined> {
  let asked: PullItem & WireWritten;
  try {
    asked = await client.send<PullItem & WireWritten>('POST', '/admin/pulls', { source });
  } catch (error) {
    // No agent is connected, or more than one worker could be meant: it is fetched here.
    if (error instanceof AdminRefusal && ['worker_unavailable', 'invalid_request'].includes(error.code ?? ''))
      return undefined;
    throw error;
  }
  console.error(`The agent fetches ${source}; Ctrl-C ends this command, and not the transfer.`);
  const wait = asked.position === undefined ? '' : `?wait=${asked.position}`;
  let told = 0;
  for (;;) {
    const now = await client.get<PullItem>(`/admin/pulls/${encodeURIComponent(asked.pullId)}${wait}`);
    for (const { file, bytes, seconds } of now.files.slice(told))
      console.error(`${file}: ${formatBytes(bytes)} in ${formatSeconds(seconds)}`);
    told = now.files.length;
    if (now.state === 'finished') {
      console.log(`${source} is here (${formatBytes(now.pulledBytes)} fetched). \`berth models\` lists it.`);
      return 0;
    }
    if (now.state !== 'running') throw new Error(now.reason ?? `It was ${now.state}.`);
    await pause(EVERY_MS);
  }
}
