import { formatBytes } from '#domain/units.js';
import type { AccuracyRow } from '../client/rows.js';
import { shorten, table } from '../table.js';

/** How far predicted sizes were from measured ones, by model, class and engine build; at most 100 columns. */
export function accuracyText(rows: readonly AccuracyRow[]): string {
  if (rows.length === 0) return 'Nothing was loaded yet: sizes are measured when a model loads.';
  return table(
    ['model', 'class', 'engine build', 'loads', 'mean', 'worst', 'off by'],
    rows.map((row) => [
      shorten(row.modelKey, 22),
      shorten(classText(row), 22),
      shorten(row.engineBuild ?? '', 13),
      String(row.loads),
      percent(row.meanError),
      percent(row.worstError),
      offBy(row),
    ]),
    [3, 4, 5],
    [2, 1, 0],
  );
}

/** The parts of a class that a reader tells it by: `F16 RAM 8192×1 f16`. The build has a column of its own. */
function classText({ classKey }: AccuracyRow): string {
  const parts = classKey.split('|');
  if (parts.length !== 10) return parts.slice(0, -1).join(' ');
  const [artifact, devices, layers, experts, kvType, context = '', slots = ''] = parts;
  const where = devices === '' ? 'RAM' : `${layers}${experts === 'cm0' ? '' : ` ${experts}`}`;
  return `${artifact} ${where} ${context.slice('ctx'.length)}×${slots.slice('np'.length)} ${kvType}`;
}

const percent = (part: number): string => `${(part * 100).toFixed(part < 0.1 ? 2 : 1)} %`;

/** Above: it took more than was predicted. */
function offBy({ mostAboveBytes, mostBelowBytes }: AccuracyRow): string {
  if (mostAboveBytes <= 0 && mostBelowBytes <= 0) return 'nothing';
  return mostAboveBytes >= mostBelowBytes
    ? `${formatBytes(mostAboveBytes)} above`
    : `${formatBytes(mostBelowBytes)} below`;
}
