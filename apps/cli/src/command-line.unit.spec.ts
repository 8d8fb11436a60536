import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseArgs, takeFlags } from './args.js';
import { bench } from './commands/bench.js';
import { commandHelp } from './commands/help.js';
import { LISTS } from './commands/lists.js';
import { MANAGERS } from './commands/managers.js';
import { operator } from './commands/operator.js';
import { PROCESSES } from './commands/processes.js';
import { pull } from './commands/pull.js';
import { READERS } from './commands/readers.js';
import { replay } from './commands/replay.js';
import { up } from './commands/up.js';
import { whatIf } from './commands/what-if.js';
import { distance, nearest } from './nearest.js';
import { MOST_COLUMNS, shorten, table } from './table.js';

describe('flags', () => {
  const flags = { port: 'value', verbose: 'switch' } as const;
  const parse = (...argv: string[]) => parseArgs(argv, flags, 'up');

  it('take their value after a blank or an equals sign, and leave the words', () => {
    expect(parse('a', '--port', '1', '--verbose', 'b').flags).toEqual({ port: '1', verbose: true });
    expect(parse('--port=1', '--', '--port').words).toEqual(['--port']);
  });

  it.each([
    [['--prot', '1'], /--prot is no flag of `berth up`; did you mean --port\?/],
    [['-p', '1'], /-p is no flag/],
    [['--port'], /--port needs a value/],
    [['--port='], /--port needs a value/],
    [['--verbose=yes'], /--verbose takes no value/],
    [['--port', '1', '--port', '2'], /--port is given twice/],
    [['--constructor'], /--constructor is no flag/],
  ])('refuse %j', (argv, words) => {
    expect(() => parse(...argv)).toThrow(words);
  });

  it('of a setting are taken from among the arguments of a program, which keeps the others', () => {
    expect(takeFlags(['--home', 'h', 'owner/repo', '--file=x'], ['home'])).toEqual({
      flags: { home: 'h' },
      rest: ['owner/repo', '--file=x'],
    });
  });
});

describe('the help', () => {
  const commands = [
    up,
    ...READERS,
    ...LISTS,
    ...MANAGERS,
    operator,
    pull,
    ...PROCESSES,
    replay,
    whatIf,
    bench,
  ];

  it.each(commands.map((command) => [command.name, command] as const))(
    'on %s fits 100 columns and says how it is written',
    (name, command) => {
      const text = commandHelp(command);
      expect(text).toMatch(new RegExp(`^berth ${name}`));
      expect(text.split('\n').filter((line) => line.length > MOST_COLUMNS)).toEqual([]);
    },
  );
});

describe('the nearest name', () => {
  it('is the one that was meant', () => {
    const names = ['status', 'models', 'explain', 'up', 'pull'];
    expect(nearest('stauts', names)).toBe('status');
    expect(nearest('expl', names)).toBe('explain');
    expect(nearest('Model', names)).toBe('models');
    expect(nearest('xyzzy', names)).toBeUndefined();
  });

  it('is found by a distance that is symmetric, and zero for equal words only', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
        expect(distance(a, b)).toBe(distance(b, a));
        expect(distance(a, b) === 0).toBe(a === b);
        expect(distance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});

describe('tables', () => {
  it('align their columns and end no line with blanks', () => {
    expect(
      table(
        ['a', 'size'],
        [
          ['long cell', '1'],
          ['', '22'],
        ],
        [1],
      ),
    ).toBe(['a          size', 'long cell     1', '             22'].join('\n'));
  });

  it('shorten a cell in the middle to the width that it may have', () => {
    expect(shorten('short', 5)).toBe('short');
    expect(shorten('owner/a-long-model-name', 11)).toBe('owner…-name');
  });
});
