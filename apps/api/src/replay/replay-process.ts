import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ReplayLine, ReplayMode } from '#domain/wire/index.js';
import { LOWER, lowerProcess } from '#runtime/priority.js';
import { packageRoot } from '#runtime/process-info.js';

/** A replay that runs, for whoever started it. */
export interface ReplayRun {
  stop(): void;
}

export interface ReplayListener {
  readonly onLine: (line: ReplayLine) => void;
  /** It is over; `message` says why when it was not done. */
  readonly onEnd: (message: string | undefined) => void;
}

export type StartReplay = (mode: ReplayMode, listener: ReplayListener) => ReplayRun;

const MOST_ERROR_CHARACTERS = 2000;

/**
 * Runs what `berth replay --json` runs, in a process of its own: the views are folded by the projector's code, and no call
 * waits for it. It ends with the api, whose pipe it writes to.
 */
export const replayProcesses =
  (urls: { readonly eventstoreUrl: string; readonly databaseUrl: string | undefined }): StartReplay =>
  (mode, { onLine, onEnd }) => {
    const main = join(packageRoot(), 'dist/apps/projector/src/replay/main.js');
    const child = spawn(process.execPath, [main, '--json', ...(mode === 'verify' ? ['--verify'] : [])], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        EVENTSTORE_URL: urls.eventstoreUrl,
        DATABASE_URL: urls.databaseUrl,
      },
    });
    let verdict = false;
    let errors = '';
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as ReplayLine;
      verdict ||= line.verified !== undefined || line.replayed !== undefined;
      onLine(line);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors = `${errors}${chunk.toString('utf8')}`.slice(-MOST_ERROR_CHARACTERS);
    });
    child.once('error', (error) => onEnd(`It could not be started: ${error.message}`));
    // Differences end it with 1 as well: what it said last tells them from a failure.
    child.once('close', () => onEnd(verdict ? undefined : sentenceIn(errors)));
    if (child.pid !== undefined) lowerProcess(child.pid, LOWER);
    return { stop: () => void child.kill('SIGTERM') };
  };

const sentenceIn = (errors: string): string =>
  errors
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^berth: /, '') || 'It was stopped before it was done.';
