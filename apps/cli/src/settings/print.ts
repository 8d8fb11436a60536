import { maskUrl } from './check-value.js';
import type { ResolvedSettings } from './resolve.js';
import { CONFIG_ENV, settingsTable } from './table.js';
import { wrapped } from '../list-table.js';
import { columnsOf, table } from '../table.js';

export interface PrintedSetting {
  readonly name: string;
  readonly env: string;
  readonly value: string | null;
  readonly from: string;
}

/** Each value and where it came from; secrets in URLs are masked. */
export function printedSettings(settings: ResolvedSettings): readonly PrintedSetting[] {
  return settings.list.map(({ setting, value, from }) => ({
    name: setting.name,
    env: setting.env,
    value: value === undefined ? null : maskUrl(value),
    from,
  }));
}

export function printConfig(settings: ResolvedSettings): string {
  const rows = printedSettings(settings).map(({ env, value, from }, i) => [
    env,
    value ?? `(${settingsTable[i]?.unset ?? 'not set'})`,
    from,
  ]);
  return table(['setting', 'value', 'from'], rows);
}

const FLAG_COLUMNS = 24;

/** A flag and what is said of it, which goes on below itself. */
function beside(flag: string, text: string): string {
  const indent = ' '.repeat(FLAG_COLUMNS + 3);
  const lines = wrapped(text, columnsOf() - indent.length).replaceAll('\n', `\n${indent}`);
  return `  ${flag.padEnd(FLAG_COLUMNS)} ${lines}`;
}

/** The settings as help shows them. */
export function settingsHelp(): string {
  return settingsTable
    .flatMap(({ name, placeholder, summary, env, fallback, unset = '' }) => [
      beside(`--${name} ${placeholder}`, summary),
      beside('', `${env}; default: ${fallback ?? unset}`),
    ])
    .join('\n');
}

/** The reference page of the settings. */
export function settingsReference(): string {
  const rows = settingsTable.map(
    (setting) =>
      `| \`--${setting.name} ${setting.placeholder}\` | \`${setting.env}\` | \`${setting.name}\` | ${setting.summary} | ${setting.fallback ?? setting.unset ?? ''} |`,
  );
  return [
    '# Settings',
    '',
    'A flag wins over the environment, the environment over `berth.yaml`, that over the default. `berth.yaml` lies in the',
    `home folder; \`--config FILE\` or \`${CONFIG_ENV}\` names another. \`berth up --print-config\` shows what holds and why.`,
    '',
    '| flag | environment | berth.yaml | what | default |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
