import { describe, expect, it } from 'vitest';
import type { WhatIfFigures, WhatIfReport } from '#domain/wire/index.js';
import { parseArgs } from '../args.js';
import { UsageError } from '../usage-error.js';
import type { WhatIfNight } from '#domain/wire/index.js';
import { nightsText } from '../views/what-if-nights-view.js';
import { whatIfText } from '../views/what-if-view.js';
import { FLAGS, requestOf } from './what-if.js';

const NOW_MS = Date.parse('2026-01-05T12:00:00Z');
const asked = (...argv: string[]) => requestOf(parseArgs(argv, FLAGS, 'what-if'), NOW_MS);

describe('what `berth what-if` asks for', () => {
  it('is the last day as it was when nothing is said', () => {
    expect(asked()).toEqual({ from: '2026-01-04T12:00:00.000Z', to: '2026-01-05T12:00:00.000Z' });
  });

  it('is every change that is named', () => {
    expect(
      asked(
        '--last=7d',
        '--device=RTX 3090=48GiB,new=24GiB',
        '--ram-max=64GiB',
        '--workers=1',
        '--policy=lru',
        '--set=parallel=4,kvType=q8_0',
        '--no-bound',
      ),
    ).toEqual({
      from: '2025-12-29T12:00:00.000Z',
      to: '2026-01-05T12:00:00.000Z',
      devices: [
        { name: 'RTX 3090', bytes: 48 * 2 ** 30 },
        { name: 'new', bytes: 24 * 2 ** 30 },
      ],
      ramMaxBytes: 64 * 2 ** 30,
      moreWorkers: 1,
      settings: { parallel: 4, kvType: 'q8_0', evictionOrder: 'lru' },
      bound: false,
    });
  });

  it.each([
    ['--last=soon', /90m, 24h or 7d/],
    ['--from=never', /2026-01-05/],
    ['--device=card', /NAME=VALUE/],
    ['--device=card=big', /24GiB/],
    ['--policy=best', /loss, lru, gdsf, classic/],
    ['--workers=many', /such as 1/],
  ])('is refused with what to write: %s', (flag, sentence) => {
    expect(() => asked(flag)).toThrow(UsageError);
    expect(() => asked(flag)).toThrow(sentence);
  });
});

const figures = (loads: number): WhatIfFigures => ({
  calls: 400,
  served: 398,
  refused: 2,
  toOutputSeconds: { mean: 6.25, p50: 4, p99: 48 },
  toFirstByteSeconds: { mean: 2.5, p50: 1, p99: 40 },
  longestWaitSeconds: 41,
  loads,
  failedLoads: 0,
  loadSeconds: 12 * loads,
  usualLoadSeconds: 12 * loads,
  evictions: loads - 4,
});

const report = (over: Partial<WhatIfReport> = {}): WhatIfReport => ({
  from: '2026-01-04T12:00:00.000Z',
  to: '2026-01-05T12:00:00.000Z',
  calls: 400,
  leftOut: 3,
  reproduced: {
    decisions: 200,
    identical: 199,
    differences: [
      {
        decisionId: 'd1',
        at: '2026-01-04T13:00:00.000Z',
        workerId: 'w',
        modelKey: 'an-owner-with-a-long-name/a-model-with-a-long-name-instruct-gguf',
        fields: [{ field: 'victims', logged: 'r'.repeat(80), again: '' }],
        reason: 'it was taken under version 1 of the rules; these are version 2',
      },
    ],
  },
  really: figures(41),
  asItWas: figures(40),
  changes: [
    {
      name: '24 GiB more on GPU-0c9d2f0e-6a3c-4d55-9d51-8c1f0c8a7b11',
      figures: figures(24),
      loadsSaved: 0.4,
    },
  ],
  least: { atOnceSeconds: 350, delayedSeconds: 300, delaySeconds: 60, ratio: 1.4 },
  sentence: 'You were at 1.4 × the least loading possible; 24 GiB more would have saved 40 % of the loads.',
  notes: ['A call takes what it really took; on another placement that by the ratio of the estimated rates.'],
  ...over,
});

describe('what it prints', () => {
  it('begins with what it comes to, holds the figures beside each other, and fits 100 columns', () => {
    const text = whatIfText(report());
    const lines = text.split('\n');
    expect(lines[0]).toBe(report().sentence);
    expect(text).toContain('199 of 200 decisions come out of the log as they were taken (99.5 %).');
    expect(lines.filter((line) => line.startsWith('really'))[0]?.split(/\s{2,}/)).toEqual([
      'really',
      '6.25 s',
      '48 s',
      '2.50 s',
      '41',
      '492',
      '37',
      '2',
    ]);
    expect(lines.find((line) => line.startsWith('least possible'))).toMatch(/ 350$/);
    expect(text).toContain('version 1 of the rules');
    expect(text).toContain('berth help what-if');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
  });

  it('breaks what is longer: the sentence, the notes, the reason of a difference', () => {
    const long = 'word '.repeat(40).trim();
    const { differences } = report().reproduced;
    const text = whatIfText(
      report({
        sentence: long,
        notes: [long],
        reproduced: {
          ...report().reproduced,
          differences: differences.map((each) => ({ ...each, reason: long })),
        },
      }),
    );
    expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
    expect(text.match(/word/g)).toHaveLength(40 * (2 + Math.min(5, differences.length)));
    expect(differences.length).toBeGreaterThan(0);
  });

  it('says what to do where nothing was called', () => {
    const text = whatIfText(
      report({ calls: 0, sentence: 'No call that needs a place was logged in this time.' }),
    );
    expect(text.replaceAll('\n', ' ')).toMatch(/^No call .* --last 7d\.$/);
    expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });
});

describe('the summaries of nights', () => {
  const figures: WhatIfNight['really'] = {
    calls: 12_345,
    served: 12_344,
    refused: 1,
    toOutputSeconds: { mean: 2, p50: 1, p99: 9 },
    toFirstByteSeconds: { mean: 1, p50: 0.5, p99: 3 },
    longestWaitSeconds: 20,
    loads: 41,
    failedLoads: 0,
    loadSeconds: 1234,
    usualLoadSeconds: 1200,
    evictions: 38,
  };
  const night = (day: string): WhatIfNight => ({
    day,
    from: '2026-01-04T03:00:00.000Z',
    to: '2026-01-05T03:00:00.000Z',
    calls: 12_345,
    leftOut: 0,
    decisions: 41,
    identical: 41,
    really: figures,
    asItWas: figures,
    changes: [{ name: 'NVIDIA GeForce RTX 3090 + 24.0 GiB', figures, loadsSaved: 0.41 }],
    least: { delaySeconds: 60, delayedSeconds: 860, ratio: 1.4 },
    sentence: `You were at 1.4 × the best possible; 24 GiB more would have saved 41 % of the loads. ${'More. '.repeat(20)}`,
  });

  it('are a line each, newest first, with the sentence of the last one, and fit 100 columns', () => {
    const text = nightsText([night('2026-01-05'), night('2026-01-04')]);
    expect(text.split('\n').slice(0, 3)).toEqual([
      expect.stringMatching(/^night +calls +refused +loads +loading +of least +more memory saves$/),
      expect.stringMatching(/^2026-01-05 +12,345 +1 +41 +\S.* +1\.4 × +41 % by NVIDIA/),
      expect.stringMatching(/^2026-01-04 /),
    ]);
    expect(text).toContain('2026-01-05: You were at 1.4 × the best possible;');
    expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });

  it('say when there is the first one, and what to do until then', () => {
    expect(nightsText([])).toContain('berth what-if --last 24h');
    expect(
      nightsText([])
        .split('\n')
        .filter((line) => line.length > 100),
    ).toEqual([]);
  });
});
