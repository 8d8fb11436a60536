import { posix, win32 } from 'node:path';
import { didYouMean } from '../nearest.js';
import { UsageError } from '../usage-error.js';
import { parseBerthYaml } from './berth-yaml.js';
import { faultOf } from './check-value.js';
import { CONFIG_ENV, NO_CONFIG, settingsTable, type Setting, type SettingName } from './table.js';

/** Everything that decides a setting, so that the resolution itself touches nothing. */
export interface SettingSources {
  /** By flag name, without dashes; `config` names the file. */
  readonly flags: Readonly<Record<string, string | true>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** The user's home folder. */
  readonly userHome: string;
  readonly cwd: string;
  /** The text of a file, or undefined when there is none. */
  readonly readFile: (path: string) => string | undefined;
}

export interface ResolvedSetting {
  readonly setting: Setting;
  readonly value: string | undefined;
  /** `flag --port`, `environment BERTH_PORT`, `/path/berth.yaml`, `default`. */
  readonly from: string;
}

export interface ResolvedSettings {
  readonly list: readonly ResolvedSetting[];
  readonly values: Readonly<Partial<Record<SettingName, string>>> & { readonly home: string };
  readonly from: Readonly<Record<SettingName, string>>;
  /** The file that was read, when there was one. */
  readonly file: string | undefined;
}

/**
 * Flag, then environment, then berth.yaml, then default.
 * @throws UsageError for an unknown name (naming the nearest) or a bad value (saying where it came from).
 */
export function resolveSettings(sources: SettingSources): ResolvedSettings {
  refuseUnknownVariables(sources.env);
  const paths = sources.platform === 'win32' ? win32 : posix;
  const file = readSettingsFile(sources, paths);
  const path = (value: string, base: string) =>
    paths.resolve(base, value.replace(/^~(?=$|[/\\])/, sources.userHome));
  const given = (setting: (typeof settingsTable)[number]): Omit<ResolvedSetting, 'setting'> | undefined => {
    const flag = sources.flags[setting.name];
    if (typeof flag === 'string') return { value: flag, from: `flag --${setting.name}` };
    const variable = sources.env[setting.env];
    if (variable !== undefined && variable !== '') {
      return { value: variable, from: `environment ${setting.env}` };
    }
    const line = file.values[setting.name];
    return line === undefined ? undefined : { value: line, from: file.path };
  };
  const values: Partial<Record<SettingName, string>> & { home: string } = {
    home: defaultHome(sources, paths),
  };
  const from = {} as Record<SettingName, string>;
  const list = settingsTable.map((setting): ResolvedSetting => {
    const found = given(setting);
    let value = found?.value;
    if (value !== undefined) {
      const fault = faultOf(setting, value);
      if (fault !== undefined) throw new UsageError(`${label(setting, found?.from ?? '')} ${fault}`);
      if (setting.kind.type === 'path') {
        value = path(value, found?.from === file.path ? paths.dirname(file.path) : sources.cwd);
      }
    } else if (setting.name === 'home') {
      value = values.home;
    } else if (setting.name === 'models') {
      value = paths.join(values.home, 'models');
    } else {
      value = setting.fallback;
    }
    if (value !== undefined) values[setting.name] = value;
    from[setting.name] = found?.from ?? 'default';
    return { setting, value, from: from[setting.name] };
  });
  return { list, values, from, file: file.path === '' ? undefined : file.path };
}

/** The environment in which every process of Berth finds the same settings again, whatever files lie about. */
export function settingsEnvironment(settings: ResolvedSettings): Record<string, string> {
  const env: Record<string, string> = { [CONFIG_ENV]: NO_CONFIG };
  for (const { setting, value } of settings.list) if (value !== undefined) env[setting.env] = value;
  return env;
}

function refuseUnknownVariables(env: SettingSources['env']): void {
  const known = [...settingsTable.map((setting) => setting.env), CONFIG_ENV];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('BERTH_') || value === undefined || known.includes(name)) continue;
    // Variables of the tests are theirs.
    // What commands send to a Berth elsewhere: a secret, and no setting of this one.
    if (name === 'BERTH_KEY') continue;
    if (name.startsWith('BERTH_TEST_')) continue;
    throw new UsageError(
      `The environment sets ${name}, which is no setting of Berth${didYouMean(name, known) || '; see `berth help settings`'}`,
    );
  }
}

function readSettingsFile(sources: SettingSources, paths: typeof posix) {
  const flag = sources.flags['config'];
  const named = typeof flag === 'string' ? flag : sources.env[CONFIG_ENV];
  if (named === NO_CONFIG) return { path: '', values: {} };
  if (named !== undefined && named !== '') {
    const path = paths.resolve(sources.cwd, named);
    const text = sources.readFile(path);
    if (text === undefined) throw new UsageError(`The settings file ${path} is not there or cannot be read`);
    return { path, values: parseBerthYaml(text, path) };
  }
  const homeFlag = sources.flags['home'];
  const home = typeof homeFlag === 'string' ? homeFlag : sources.env['BERTH_HOME'];
  const folder = home ? paths.resolve(sources.cwd, home) : defaultHome(sources, paths);
  const path = paths.join(folder, 'berth.yaml');
  const text = sources.readFile(path);
  if (text === undefined) return { path: '', values: {} };
  const values = parseBerthYaml(text, path);
  if (values.home !== undefined && paths.resolve(folder, values.home) !== folder) {
    throw new UsageError(
      `${path} names another home (${values.home}) than the folder it lies in; remove that line, or name the file with --config`,
    );
  }
  return { path, values };
}

function defaultHome(sources: SettingSources, paths: typeof posix): string {
  const { env, platform, userHome } = sources;
  if (platform === 'win32') {
    return paths.join(env['LOCALAPPDATA'] ?? paths.join(userHome, 'AppData', 'Local'), 'berth');
  }
  if (platform === 'darwin') return paths.join(userHome, 'Library', 'Application Support', 'berth');
  // The base directory specification says that a relative path is to be ignored.
  const data = env['XDG_DATA_HOME'];
  return paths.join(
    data !== undefined && paths.isAbsolute(data) ? data : paths.join(userHome, '.local', 'share'),
    'berth',
  );
}

const label = (setting: Setting, from: string): string => {
  if (from.startsWith('flag')) return `--${setting.name}`;
  return from.startsWith('environment') ? setting.env : `${setting.name} in ${from}`;
};
