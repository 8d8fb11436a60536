import type { WhatIfFigures, WhatIfReport } from '#domain/wire/index.js';
import { wrapped } from '../list-table.js';
import { columnsOf, shorten, table } from '../table.js';

const NAME_WIDTH = 36;
const MOST_DIFFERENCES = 5;

const HEAD = ['', 'to output', 'p99', '1st byte', 'loads', 'load s', 'evicted', 'refused'];
const RIGHT = [1, 2, 3, 4, 5, 6, 7];

/** What it comes to, the figures beside each other, and how far they are to be believed. At most 100 columns. */
export function whatIfText(report: WhatIfReport): string {
  const { from, to, calls, leftOut, really, asItWas, changes, sentence, notes } = report;
  if (calls === 0)
    return wrapped(`${sentence} Name another one with --from and --to, or a longer one with --last 7d.`);
  const rows = [
    row('really', really),
    row('as it was, simulated', asItWas),
    ...changes.map(({ name, figures }) => row(name, figures)),
    ...leastRows(report),
  ];
  const others = leftOut === 0 ? '' : `; ${leftOut} more that no placement would have changed`;
  return [
    wrapped(sentence),
    '',
    `${minute(from)} to ${minute(to)} UTC: ${calls} calls${others}`,
    table(HEAD, rows, RIGHT, [0]),
    '',
    reproducedText(report),
    ...notes.map((note) => wrapped(`- ${note}`)),
    ...(changes.every(({ name }) => name.includes(' more '))
      ? [
          '',
          'Try something else: `berth what-if --device CARD=48GiB`, `--policy lru`; see `berth help what-if`.',
        ]
      : []),
  ].join('\n');
}

const minute = (iso: string): string => iso.slice(0, 16).replace('T', ' ');

const seconds = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} s`;

const row = (name: string, f: WhatIfFigures): readonly string[] => [
  shorten(name, NAME_WIDTH),
  seconds(f.toOutputSeconds.mean),
  seconds(f.toOutputSeconds.p99),
  seconds(f.toFirstByteSeconds.mean),
  String(f.loads),
  f.loadSeconds.toFixed(0),
  String(f.evictions),
  String(f.refused),
];

function leastRows({ least }: WhatIfReport): readonly (readonly string[])[] {
  const { atOnceSeconds, delayedSeconds, delaySeconds } = least;
  const of = (name: string, value: number | undefined): readonly string[] => [
    shorten(name, NAME_WIDTH),
    '',
    '',
    '',
    '',
    value === undefined ? '?' : value.toFixed(0),
    '',
    '',
  ];
  return [of('least possible', atOnceSeconds), of(`least, calls may wait ${delaySeconds} s`, delayedSeconds)];
}

function reproducedText({ reproduced }: WhatIfReport): string {
  const { decisions, identical, differences } = reproduced;
  if (decisions === 0) return 'No decision was logged in this time.';
  const share = `${((100 * identical) / decisions).toFixed(1)} %`;
  const lines = [`${identical} of ${decisions} decisions come out of the log as they were taken (${share}).`];
  for (const { at, modelKey, fields, reason } of differences.slice(0, MOST_DIFFERENCES)) {
    lines.push(`  ${minute(at)}  ${shorten(modelKey, 40)}`);
    for (const { field, logged, again } of fields.slice(0, 2))
      lines.push(
        `    ${shorten(`${field}: ${logged || 'none'} in the log, ${again || 'none'} again`, columnsOf() - 8)}`,
      );
    lines.push(
      ...wrapped(reason, columnsOf() - 4)
        .split('\n')
        .map((line) => `    ${line}`),
    );
  }
  const left = differences.length - MOST_DIFFERENCES;
  if (left > 0) lines.push(`  and ${left} more; --json lists them.`);
  return lines.join('\n');
}
