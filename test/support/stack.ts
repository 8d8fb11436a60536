import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeModel } from '../../apps/worker-agent/src/make-model/index.js';
import { packageRoot } from '#runtime/process-info.js';
import { waitFor } from './wait.js';

export type Preset = Parameters<typeof makeModel>[0]['preset'];

export interface StackOptions {
  /** Kept when given (a second start); else a new temporary folder. */
  readonly home?: string;
  readonly ramMax?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Model keys to write before the start, with their presets. */
  readonly models?: Readonly<
    Record<string, Preset | { preset: Preset; sizeMb?: number; contextTokens?: number; seed?: number }>
  >;
}

/** A whole Berth of its own: `berth up` in a home of its own on a free port. */
export interface Stack {
  readonly home: string;
  readonly url: string;
  /** What `berth up` printed so far. */
  output(): string;
  readonly process: ChildProcess;
  /** Pid of a child by its name (`api`, `agent`, `projector`), as the supervisor's process tree says. */
  pidOf(name: string): number;
  chat(model: string, content?: string, more?: Record<string, unknown>): Promise<Response>;
  /** Ctrl-C, as a terminal sends it; resolves with the exit code once everything is gone. */
  stop(): Promise<number | null>;
}

/** Temporary folders of a test file, removed at its end. */
export function tempFolder(prefix = 'berth-'): string {
  return mkdtempSync(join(tmpdir(), prefix));
}

export async function writeModels(home: string, models: NonNullable<StackOptions['models']>): Promise<void> {
  for (const [key, given] of Object.entries(models)) {
    const options = typeof given === 'string' ? { preset: given } : given;
    const folder = join(home, 'models', ...key.split('/'));
    mkdirSync(folder, { recursive: true });
    await makeModel({ ...options, file: join(folder, `${key.split('/').at(-1) ?? key}-F16.gguf`) });
  }
}

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const home = options.home ?? tempFolder();
  if (options.models) await writeModels(home, options.models);
  const args = [
    'up',
    '--home',
    home,
    '--port',
    '0',
    ...(options.ramMax ? ['--ram-max', options.ramMax] : []),
    ...(options.args ?? []),
  ];
  // A group of its own, so that a Ctrl-C reaches what a terminal's would, and nothing of the test.
  const child = spawn(process.execPath, [join(packageRoot(), 'bin', 'berth'), ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...cleanEnv(home), ...options.env },
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  let ended: number | null | undefined;
  child.on('exit', (code) => (ended = code ?? -1));
  const url = await waitFor('berth up prints its address', 90_000, () => {
    if (ended !== undefined) throw new Error(`berth up ended with ${String(ended)}:\n${output}`);
    return /curl[^\n]*?(http:\/\/[\w.[\]:]+:\d+)/.exec(output)?.[1];
  }).catch((error: unknown) => {
    // Nobody was given it to stop.
    if (ended === undefined && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    throw new Error(`${String(error)}\n${output}\n${logsOf(home)}`);
  });
  return {
    home,
    url,
    process: child,
    output: () => output,
    pidOf: (name) => {
      const found = childrenOf(child.pid ?? 0).find(
        (p) => p.command.includes(`berth ${name}`) || p.command.includes(`berth\0${name}`),
      );
      if (!found) throw new Error(`no process of berth ${name} under ${String(child.pid)}`);
      return found.pid;
    },
    chat: (model, content = 'hello', more = {}) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content }], ...more }),
      }),
    stop: async () => {
      if (ended === undefined && child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
      await waitFor('berth up ends', 60_000, () => ended !== undefined);
      return ended ?? null;
    },
  };
}

/** Nothing of the developer's own stores or settings is seen by a test's stack. */
export function cleanEnv(home: string): Record<string, string> {
  const kept = ['PATH', 'LANG', 'TZ', 'CI', 'NODE_OPTIONS'];
  return {
    ...Object.fromEntries(
      kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
    ),
    HOME: join(home, 'nobody'),
    HF_HOME: join(home, 'no-hf'),
    OLLAMA_MODELS: join(home, 'no-ollama'),
    LLAMA_SERVER_BIN: process.env['BERTH_TEST_LLAMA_SERVER'] ?? '',
  };
}

/** The tail of each process's log, for the message of a failed test. */
export function logsOf(home: string): string {
  try {
    return readdirSync(join(home, 'logs'))
      .map((file) => `--- ${file}\n${readFileSync(join(home, 'logs', file), 'utf8').slice(-3000)}`)
      .join('\n');
  } catch {
    return '(no logs)';
  }
}

export interface ProcessInfo {
  readonly pid: number;
  readonly ppid: number;
  readonly command: string;
}

/** All processes, from /proc; a zombie has no command and is left out. */
export function processes(): readonly ProcessInfo[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      const ppid = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      return command === '' ? [] : [{ pid: Number(name), ppid, command }];
    } catch {
      // It ended between the listing and the reading.
      return [];
    }
  });
}

/** Every descendant of a process. */
export function childrenOf(pid: number): readonly ProcessInfo[] {
  const all = processes();
  const found: ProcessInfo[] = [];
  const parents = [pid];
  for (let parent = parents.shift(); parent !== undefined; parent = parents.shift()) {
    for (const p of all) {
      if (p.ppid !== parent) continue;
      found.push(p);
      parents.push(p.pid);
    }
  }
  return found;
}

/** Processes of a home: whatever names it on its command line, engines among them. */
export const processesOf = (home: string): readonly ProcessInfo[] =>
  processes().filter((p) => p.command.includes(home));

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });
