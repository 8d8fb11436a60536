import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listTable, wantsColours, wrapped } from './list-table.js';
import { columnsOf, MOST_COLUMNS } from './table.js';

describe('a list on a terminal', () => {
  const rows = [
    ['01979d3e-0000-7000-8000-000000000001', `owner/${'long-'.repeat(30)}model`, 'ready'],
    ['01979d3e-0000-7000-8000-000000000002', 'short', 'failed'],
  ];

  it('fits 100 columns: the one column that may be cut is', () => {
    const lines = listTable(['id', 'model', 'state'], rows, 1, false).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(MOST_COLUMNS);
    expect(lines[1]).toContain('01979d3e-0000-7000-8000-000000000001');
    expect(lines[1]).toContain('…');
    expect(lines[2]).toMatch(/short +failed$/);
  });

  it('is as wide as a narrower terminal, where ids lose their end and figures nothing; in a pipe it stays', () => {
    expect([80, 200, 10].map((columns) => columnsOf({ isTTY: true, columns }))).toEqual([80, 100, 40]);
    expect(columnsOf({ isTTY: false, columns: 80 })).toBe(100);
    const narrow = listTable(['id', 'model', 'state'], rows, 1, false, [0], 40).split('\n');
    expect(narrow.every((line) => line.length <= 40)).toBe(true);
    expect(narrow[1]).toBe('01979d3e-0000-7000-80…  own…odel  ready');
    expect(listTable(['id', 'model'], [rows[0]!], 1, false, [0])).toContain(rows[0]![0]);
  });

  it('has colours on a terminal that wants them, and never in a pipe', () => {
    expect(listTable(['a', 'b'], [['x', 'failed']], 0, true)).toContain('\u001b[31mfailed\u001b[0m');
    expect(listTable(['a', 'b'], [['x', 'failed']], 0, false)).not.toContain('\u001b');
    expect(wantsColours({ isTTY: true }, {})).toBe(true);
    expect(wantsColours({ isTTY: false }, {})).toBe(false);
    expect(wantsColours({ isTTY: true }, { NO_COLOR: '1' })).toBe(false);
  });

  it('breaks sentences at blanks, and loses no word', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{1,30}$/), { maxLength: 40 }), (words) => {
        const text = words.join(' ');
        const lines = wrapped(text, 40).split('\n');
        expect(lines.every((line) => line.length <= 40)).toBe(true);
        expect(lines.join(' ')).toBe(text);
      }),
    );
    expect(wrapped('  indented\nsecond')).toBe('  indented\nsecond');
  });
});
