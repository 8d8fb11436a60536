import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { didYouMean } from '../nearest.js';
import { UsageError } from '../usage-error.js';
import { settingNames, type SettingName } from './table.js';

// Loaded when there is a file to read: most processes have none, and each would pay for it at its start.
const require = createRequire(import.meta.url);

/**
 * Reads berth.yaml: a mapping from setting names to single values.
 * @throws UsageError that names the file, the line and what to write instead.
 */
export function parseBerthYaml(text: string, path: string): Partial<Record<SettingName, string>> {
  const { parseDocument } = require('yaml') as typeof Yaml;
  const document = parseDocument(text, { prettyErrors: true });
  const fault = document.errors[0];
  if (fault) throw new UsageError(`${path} is no valid YAML: ${fault.message.split('\n')[0] ?? ''}`);
  const content: unknown = document.toJS();
  if (content === null || content === undefined) return {};
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw new UsageError(`${path} must hold lines such as \`port: 9000\``);
  }
  const values: Partial<Record<SettingName, string>> = {};
  for (const [key, value] of Object.entries(content)) {
    const name = settingNames.find((known) => known === key);
    if (name === undefined) {
      // Names are written with dashes here; the environment's name or camel case is the usual slip.
      const plain = key.replace(/^BERTH_/, '').replace(/([a-z])([A-Z])/g, '$1-$2');
      const near = didYouMean(plain.toLowerCase().replaceAll('_', '-'), settingNames);
      throw new UsageError(
        `${key} in ${path} is no setting${near || `; they are ${settingNames.join(', ')}`}`,
      );
    }
    if (value === null) continue;
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw new UsageError(`${key} in ${path} must be a single value, not ${JSON.stringify(value)}`);
    }
    values[name] = String(value);
  }
  return values;
}
