import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootId, isAlive } from '#runtime/process-info.js';

/** What of an engine's state file tells which process it is. */
interface EngineMark {
  readonly pid?: unknown;
  readonly pidStartTicks?: unknown;
  readonly bootId?: unknown;
}

/**
 * Ends the engines of a home whose agent is gone: each runs in a process group of its own, so that neither a Ctrl-C
 * nor the agent's end reaches it. A pid that another process has by now is left alone.
 * @returns how many were ended
 */
export function endEngines(home: string): number {
  let ended = 0;
  for (const mark of engineMarks(join(home, 'engines'))) {
    const { pid, pidStartTicks } = mark;
    if (typeof pid !== 'number' || pid <= 1 || mark.bootId !== bootId()) continue;
    if (!isAlive(pid, typeof pidStartTicks === 'number' ? pidStartTicks : undefined)) continue;
    try {
      process.kill(-pid, 'SIGKILL');
      ended += 1;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
  return ended;
}

function engineMarks(folder: string): readonly EngineMark[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => {
      try {
        return [JSON.parse(readFileSync(join(folder, name), 'utf8')) as EngineMark];
      } catch {
        // Cut short or gone meanwhile: the next agent says so.
        return [];
      }
    });
}
