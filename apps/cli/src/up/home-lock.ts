import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootId, isAlive, pidStartTicks } from '#runtime/process-info.js';

/** A process as it can be recognised later: a pid alone may have been given to another program since. */
export interface ProcessMark {
  readonly pid: number;
  readonly startTicks?: number;
}

export interface LockContent extends ProcessMark {
  readonly bootId: string;
  /** Known once the api listens. */
  readonly address?: string;
  readonly children: Readonly<Record<string, ProcessMark>>;
}

export interface HomeLock {
  /** What the last holder left when it was killed: its children may still be stopping. */
  readonly abandoned?: LockContent;
  update(change: Partial<Pick<LockContent, 'address' | 'children'>>): void;
  release(): void;
}

export class HomeIsTaken extends Error {
  readonly holder: LockContent;
  constructor(home: string, holder: LockContent) {
    const where = holder.address === undefined ? '' : ` and answers at ${holder.address}`;
    super(
      `Berth already runs on ${home}: pid ${holder.pid}${where}. Stop that one, or give this one a --home and a --port of its own.`,
    );
    this.holder = holder;
  }
}

export const lockPath = (home: string): string => join(home, 'berth.lock');

/**
 * One supervisor per home. The file is linked into place complete, so that nobody reads half of it; a file whose process
 * is gone is taken over under a second lock, so that of two takers only one wins.
 * @throws HomeIsTaken
 */
export function lockHome(home: string): HomeLock {
  const path = lockPath(home);
  const own = markOf(process.pid);
  let content: LockContent = { ...own, bootId: bootId(), children: {} };
  const draft = `${path}.${process.pid}`;
  let abandoned: LockContent | undefined;
  writeFileSync(draft, JSON.stringify(content), { mode: 0o600 });
  try {
    for (;;) {
      if (tryLink(draft, path)) break;
      const holder = readLock(home);
      if (holder !== undefined && isHeld(holder)) throw new HomeIsTaken(home, holder);
      withTakeover(path, () => {
        // Read again: another taker may have finished between our reading and our turn.
        const now = readLock(home);
        if (now !== undefined && isHeld(now)) return;
        abandoned = now ?? abandoned;
        rmSync(path, { force: true });
      });
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    ...(abandoned === undefined ? {} : { abandoned }),
    update: (change) => {
      content = { ...content, ...change };
      writeFileSync(draft, JSON.stringify(content), { mode: 0o600 });
      renameSync(draft, path);
    },
    release: () => {
      if (readLock(home)?.pid === process.pid) rmSync(path, { force: true });
    },
  };
}

/** Who holds the home now; undefined when nobody does. */
export function homeHolder(home: string): LockContent | undefined {
  const content = readLock(home);
  return content !== undefined && isHeld(content) ? content : undefined;
}

export function markOf(pid: number): ProcessMark {
  const startTicks = pidStartTicks(pid);
  return startTicks === undefined ? { pid } : { pid, startTicks };
}

export const isThere = (mark: ProcessMark): boolean => isAlive(mark.pid, mark.startTicks);

const isHeld = (content: LockContent): boolean => content.bootId === bootId() && isThere(content);

function readLock(home: string): LockContent | undefined {
  try {
    return JSON.parse(readFileSync(lockPath(home), 'utf8')) as LockContent;
  } catch {
    // Not there, or damaged by a full disk: both mean that nobody can be named.
    return undefined;
  }
}

function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function withTakeover(path: string, act: () => void): void {
  const guard = `${path}.takeover`;
  try {
    mkdirSync(guard);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // A takeover lasts milliseconds: an old guard is what a killed taker left.
    try {
      if (Date.now() - statSync(guard).mtimeMs > 5_000) rmSync(guard, { recursive: true, force: true });
    } catch {
      // The other taker has just finished.
    }
    return;
  }
  try {
    act();
  } finally {
    rmSync(guard, { recursive: true, force: true });
  }
}
