import { maskUrl } from './check-value.js';
import type { ResolvedSettings } from './resolve.js';
import { CONFIG_ENV, settingsTable } from './table.js';
import { table } from '../table.js';

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

/** The settings as help shows them. */
export function settingsHelp(): string {
  return settingsTable
    .map((setting) => {
      const flag = `--${setting.name} ${setting.placeholder}`;
      return `  ${flag.padEnd(24)} ${setting.summary}\n  ${''.padEnd(24)} ${setting.env}; default: ${setting.fallback ?? setting.unset ?? ''}`;
    })
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
