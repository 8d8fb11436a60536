import { describe, expect, it } from 'vitest';
import { RowSet } from './row-set.js';

describe('a row set', () => {
  it('asks for each missing row once, and knows an absent one after loading', () => {
    const rows = new RowSet('recent_events');
    rows.want('a');
    rows.want('a');
    rows.want('b');
    expect(rows.missing()).toEqual([['a'], ['b']]);
    rows.loaded([{ stream: 'b', event_ids: ['1'] }]);
    expect(rows.missing()).toEqual([]);
    rows.want('b');
    expect(rows.missing()).toEqual([]);
    expect(rows.get('a')).toBeUndefined();
    expect(rows.get('b')).toEqual({ stream: 'b', event_ids: ['1'] });
  });

  it('refuses to read a row that was not asked for: the handler did not name it', () => {
    expect(() => new RowSet('calls').get('c')).toThrow(/Row c of calls was read but not loaded/);
  });

  it('gives back only what was changed', () => {
    const rows = new RowSet('recent_events');
    rows.want('a');
    rows.want('b');
    rows.loaded([
      { stream: 'a', event_ids: ['1'] },
      { stream: 'b', event_ids: ['2'] },
    ]);
    rows.patch(['b'], { event_ids: ['3'] });
    rows.patch(['b'], { event_ids: ['4'] });
    expect(rows.changed()).toEqual([{ stream: 'b', event_ids: ['4'] }]);
  });

  it('leaves a row alone that is not there', () => {
    const rows = new RowSet('recent_events');
    rows.want('a');
    rows.loaded([]);
    rows.patch(['a'], { event_ids: ['3'] });
    expect(rows.changed()).toEqual([]);
  });
});
