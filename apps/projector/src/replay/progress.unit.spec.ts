import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { LogPosition } from '#domain/events/index.js';
import { progressOf } from './progress.js';

const at = (commit: number): LogPosition => ({ commit: BigInt(commit), prepare: BigInt(commit) });
const END = at(1000);

/** A progress over a stream that may be a terminal, on a clock that is set by hand. */
function watched({ json = false, isTTY = false } = {}) {
  const stderr = Object.assign(new PassThrough(), { isTTY, columns: 120 });
  let shown = '';
  stderr.on('data', (chunk: Buffer) => (shown += chunk.toString('utf8')));
  const said: unknown[] = [];
  let ms = 0;
  const progress = progressOf({ json, stderr, say: (line) => said.push(line), now: () => ms });
  return {
    progress,
    said,
    shown: () => shown,
    lines: () => shown.trimEnd().split('\n'),
    after: (seconds: number) => (ms += seconds * 1000),
  };
}

describe('the progress of a replay', () => {
  it('is a line every two seconds in a pipe, with the rate and the time left by the share of bytes', () => {
    const { progress, after, lines, said } = watched();
    progress.step('fold', END);
    after(1);
    progress.fold(2000, at(100));
    after(1);
    progress.fold(2000, at(200));
    after(0.5);
    progress.fold(1000, at(250));
    after(7.5);
    progress.fold(115_000, at(800));
    progress.step('index', END);
    expect(lines()).toEqual([
      'fold',
      '20.0 %, 4,000 events, 2,000/s, 8.0 s left',
      '80.0 %, 120,000 events, 12,000/s, 2.5 s left',
      'index',
    ]);
    expect(said).toEqual([]);
  });

  it('is an object a line for a program, on its standard output', () => {
    const { progress, after, said, shown } = watched({ json: true, isTTY: true });
    progress.step('fold', END);
    after(4);
    progress.fold(2000, at(400));
    expect(said).toEqual([
      { step: 'fold', events: 0, share: 0, perSecond: 0 },
      { progress: { events: 2000, share: 0.4, perSecond: 500, leftSeconds: 6 } },
    ]);
    expect(shown()).toBe('');
  });

  it('is a bar on a terminal, with what is done, the rate and the time left', () => {
    const { progress, after, shown } = watched({ isTTY: true });
    progress.step('fold', END);
    after(5);
    progress.fold(20_000, at(250));
    progress.end();
    expect(shown()).toMatch(/fold [█=]+\S* 25% {2}20,000 events {2}4,000\/s {2}15 s left/);
  });
});
