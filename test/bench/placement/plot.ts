import { meanSecondsOf, ratioOf, type Row } from './report.js';

const WIDTH = 640;
const HEIGHT = 420;
const MARGIN = { left: 60, right: 190, top: 40, bottom: 50 } as const;

/** Load seconds ÷ bound against the mean time to output of each policy: nearer to the lower left corner is better. */
export function plot(title: string, rows: readonly Row[]): string {
  const points = rows.map((row) => ({
    name: row.policy,
    x: meanSecondsOf(row),
    y: ratioOf(row),
    refused: row.runs.some((r) => r.metrics.refused > 0),
  }));
  const xMax = nice(Math.max(...points.map((p) => p.x), 1));
  const yMax = nice(Math.max(...points.map((p) => p.y), 1));
  const left = MARGIN.left;
  const bottom = HEIGHT - MARGIN.bottom;
  const sx = (x: number): number => left + (x / xMax) * (WIDTH - MARGIN.left - MARGIN.right);
  const sy = (y: number): number => bottom - (y / yMax) * (bottom - MARGIN.top);
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const text = (x: number, y: number, s: string, anchor = 'middle'): string =>
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(s)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(left, 22, title, 'start'),
    ...ticks.flatMap((t) => [
      `<line x1="${sx(t * xMax).toFixed(1)}" y1="${MARGIN.top}" x2="${sx(t * xMax).toFixed(1)}" y2="${bottom}" stroke="#ddd"/>`,
      `<line x1="${left}" y1="${sy(t * yMax).toFixed(1)}" x2="${sx(xMax).toFixed(1)}" y2="${sy(t * yMax).toFixed(1)}" stroke="#ddd"/>`,
      text(sx(t * xMax), bottom + 18, (t * xMax).toFixed(0)),
      text(left - 8, sy(t * yMax) + 4, (t * yMax).toFixed(1), 'end'),
    ]),
    `<line x1="${left}" y1="${sy(1).toFixed(1)}" x2="${sx(xMax).toFixed(1)}" y2="${sy(1).toFixed(1)}" stroke="#888" stroke-dasharray="4 3"/>`,
    ...points.flatMap((p, i) => {
      const color = `hsl(${Math.round((360 * i) / points.length)} 65% 42%)`;
      return [
        `<circle cx="${sx(p.x).toFixed(1)}" cy="${sy(p.y).toFixed(1)}" r="5" fill="${p.refused ? 'none' : color}" stroke="${color}" stroke-width="2"/>`,
        `<circle cx="${WIDTH - MARGIN.right + 16}" cy="${MARGIN.top + 18 * i + 6}" r="5" fill="${p.refused ? 'none' : color}" stroke="${color}" stroke-width="2"/>`,
        text(WIDTH - MARGIN.right + 28, MARGIN.top + 18 * i + 10, p.name, 'start'),
      ];
    }),
    text((left + sx(xMax)) / 2, HEIGHT - 12, 'mean time to output, s (hollow: it refused calls)'),
    `<text transform="translate(16 ${(MARGIN.top + bottom) / 2}) rotate(-90)" text-anchor="middle">load seconds ÷ bound</text>`,
    '</svg>',
    '',
  ].join('\n');
}

/** The next of 1, 2, 4, 8, 10 times a power of ten. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 8, 10].find((step) => step * power >= value) ?? 10) * power;
}

const escaped = (s: string): string => s.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
