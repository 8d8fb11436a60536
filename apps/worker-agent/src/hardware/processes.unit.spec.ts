import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OwnedProcesses, parseStat, type ProcessEntry } from './processes.js';

const process_ = (pid: number, parent: number, over: Partial<ProcessEntry> = {}): ProcessEntry => ({
  pid,
  parent,
  group: pid,
  session: pid,
  state: 'S',
  startTicks: pid * 10,
  cpuTicks: 0,
  name: `p${pid}`,
  ...over,
});
const ENGINES = new Set([10]);

describe('which processes are ours', () => {
  it('an engine and what descends from it, at any depth and in any order of the list', () => {
    const all = [process_(40, 30), process_(30, 20), process_(20, 10), process_(10, 1), process_(99, 1)];
    expect([...new OwnedProcesses().update(ENGINES, all).keys()].sort()).toEqual([10, 20, 30, 40]);
  });

  it('a grandchild whose parent ended and that the system gave to another', () => {
    const owned = new OwnedProcesses();
    owned.update(ENGINES, [process_(10, 1), process_(20, 10), process_(30, 20)]);
    expect(owned.update(ENGINES, [process_(10, 1), process_(30, 1)]).get(30)).toBe(10);
    // Never seen below it: the group or the session that the engine began tells.
    expect(owned.update(ENGINES, [process_(10, 1), process_(31, 1, { group: 10 })]).get(31)).toBe(10);
    expect(owned.update(ENGINES, [process_(10, 1), process_(32, 1, { session: 10 })]).get(32)).toBe(10);
  });

  it('not one that took the pid of one that ended, nor what outlived its engine', () => {
    const owned = new OwnedProcesses();
    owned.update(ENGINES, [process_(10, 1), process_(30, 10)]);
    expect(owned.update(ENGINES, [process_(10, 1), process_(30, 1, { startTicks: 7 })]).has(30)).toBe(false);
    owned.update(ENGINES, [process_(10, 1), process_(30, 10)]);
    expect(owned.update(new Set(), [process_(30, 1)]).size).toBe(0);
  });

  it('ends on any list of parents, circles among them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 12 }))),
        (pairs) => {
          const all = pairs.map(([pid, parent]) => process_(pid, parent, { group: 0, session: 0 }));
          for (const [pid, engine] of new OwnedProcesses().update(ENGINES, all)) {
            expect(engine).toBe(10);
            expect(pairs.some(([p]) => p === pid)).toBe(true);
          }
        },
      ),
    );
  });
});

describe('a line of a process', () => {
  it('is read past a name with blanks and parentheses', () => {
    const rest = '0 -1 4194560 1 2 3 4 70 30 0 0 20 0 1 0 987654 1 2';
    expect(parseStat(`42 (a (b) c) S 7 42 41 ${rest}`)).toEqual({
      pid: 42,
      parent: 7,
      group: 42,
      session: 41,
      state: 'S',
      startTicks: 987654,
      cpuTicks: 100,
      name: 'a (b) c',
    });
  });

  it('is nothing when it is garbage', () => {
    fc.assert(fc.property(fc.string(), (text) => void parseStat(text)));
    expect(parseStat('42 (x) S 7')).toBeUndefined();
  });
});
