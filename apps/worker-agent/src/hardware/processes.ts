import { readdirSync } from 'node:fs';
import { readText, type ReadText } from './read-text.js';

/** A process as /proc shows it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** `R` runs, `S` sleeps, `D` waits for a device, `T` is stopped, `Z` has ended. */
  readonly state: string;
  /** In clock ticks since boot: tells a reused pid from the process. */
  readonly startTicks: number;
  /** Processor time so far, in clock ticks. */
  readonly cpuTicks: number;
  readonly name: string;
}

/** A line of `/proc/<pid>/stat`; undefined for what is none. */
export function parseStat(text: string): ProcessEntry | undefined {
  // The name is in parentheses and may hold blanks and parentheses.
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return undefined;
  const fields = text.slice(close + 2).split(' ');
  const at = (i: number) => Number(fields[i]);
  const entry: ProcessEntry = {
    pid: Number(text.slice(0, open)),
    parent: at(1),
    group: at(2),
    session: at(3),
    state: fields[0] ?? '',
    cpuTicks: at(11) + at(12),
    startTicks: at(19),
    name: text.slice(open + 1, close),
  };
  const numbers = [entry.pid, entry.parent, entry.group, entry.session, entry.cpuTicks, entry.startTicks];
  return numbers.every((n) => Number.isSafeInteger(n)) ? entry : undefined;
}

/** Every process that is there; none where there is no /proc. */
export function listProcesses(read: ReadText = readText, list = pidsOf): readonly ProcessEntry[] {
  return list().flatMap((pid) => {
    const entry = parseStat(read(`/proc/${pid}/stat`) ?? '');
    return entry === undefined ? [] : [entry];
  });
}

function pidsOf(): readonly number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

/**
 * Which processes are ours: the engines and all that descends from them, at any depth. A descendant whose parents
 * ended is handed to another parent by the system; it stays ours because it was seen below an engine before, or
 * because it is still in the group or session that the engine began. What outlives its engine is foreign: it takes room
 * that no resident answers for.
 */
export class OwnedProcesses {
  private known = new Map<number, { readonly startTicks: number; readonly engine: number }>();

  /** @returns the engine's pid by the pid of everything that is ours. */
  update(engines: ReadonlySet<number>, all: readonly ProcessEntry[]): ReadonlyMap<number, number> {
    const byPid = new Map(all.map((entry) => [entry.pid, entry]));
    const owner = new Map<number, number>();
    for (const entry of all) {
      const before = this.known.get(entry.pid);
      if (engines.has(entry.pid)) owner.set(entry.pid, entry.pid);
      else if (before?.startTicks === entry.startTicks && engines.has(before.engine)) {
        owner.set(entry.pid, before.engine);
      } else if (engines.has(entry.group)) owner.set(entry.pid, entry.group);
      else if (engines.has(entry.session)) owner.set(entry.pid, entry.session);
    }
    // Descent, whatever the order of the list: each goes up until an owner or the top is met.
    for (const entry of all) {
      const path: number[] = [];
      let at: ProcessEntry | undefined = entry;
      while (at !== undefined && !owner.has(at.pid) && !path.includes(at.pid)) {
        path.push(at.pid);
        at = byPid.get(at.parent);
      }
      const engine = at === undefined ? undefined : owner.get(at.pid);
      if (engine !== undefined) for (const pid of path) owner.set(pid, engine);
    }
    this.known = new Map(
      [...owner].flatMap(([pid, engine]) => {
        const entry = byPid.get(pid);
        return entry === undefined ? [] : [[pid, { startTicks: entry.startTicks, engine }] as const];
      }),
    );
    return owner;
  }
}
