import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { resolveSettings, settingsEnvironment, type SettingSources } from './resolve.js';
import { settingNames, settingsTable } from './table.js';

const resolve = (given: Partial<SettingSources> & { files?: Record<string, string> } = {}) =>
  resolveSettings({
    flags: {},
    env: {},
    platform: 'linux',
    userHome: '/home/ada',
    cwd: '/work',
    readFile: (path) => given.files?.[path],
    ...given,
  });

describe('settings', () => {
  it('take the flag over the environment, the environment over berth.yaml, that over the default', () => {
    const files = { '/home/ada/.local/share/berth/berth.yaml': 'port: 3\nhost: a\nram-max: 3GiB\n' };
    const env = { BERTH_PORT: '2', BERTH_HOST: 'b' };
    const { values, from } = resolve({ files, env, flags: { port: '1' } });
    expect([values.port, values.host, values['ram-max'], values.log]).toEqual(['1', 'b', '3GiB', 'info']);
    expect([from.port, from.host, from['ram-max'], from.log]).toEqual([
      'flag --port',
      'environment BERTH_HOST',
      '/home/ada/.local/share/berth/berth.yaml',
      'default',
    ]);
  });

  it('hold for every setting in the same order', () => {
    const sample: Record<string, string> = {
      path: '/p',
      host: 'h',
      whole: '7',
      size: '7GiB',
      url: '',
      choice: 'warn',
    };
    fc.assert(
      fc.property(fc.constantFrom(...settingsTable), fc.boolean(), fc.boolean(), (setting, flag, env) => {
        const value = setting.kind.type === 'url' ? setting.kind.example : (sample[setting.kind.type] ?? '');
        const resolved = resolve({
          flags: flag ? { [setting.name]: value } : {},
          env: env ? { [setting.env]: value } : {},
        });
        expect(resolved.from[setting.name]).toBe(
          flag ? `flag --${setting.name}` : env ? `environment ${setting.env}` : 'default',
        );
        if (flag || env) expect(resolved.values[setting.name]).toBe(value);
      }),
    );
  });

  it('find the same values again from the environment that they result in', () => {
    const first = resolve({
      flags: { home: 'my home', 'ram-max': '2GiB', port: '0' },
      files: { '/work/my home/berth.yaml': 'cpu-max: 3' },
    });
    const again = resolve({
      env: settingsEnvironment(first),
      cwd: '/elsewhere',
      files: { '/work/my home/berth.yaml': 'cpu-max: 9' },
    });
    expect(again.values).toEqual(first.values);
  });

  it('keep models below the home unless they are named, and paths absolute from where they were named', () => {
    expect(resolve({ flags: { home: 'h' } }).values.models).toBe('/work/h/models');
    expect(resolve({ flags: { models: '~/m' } }).values.models).toBe('/home/ada/m');
    const files = { '/etc/berth.yaml': 'models: below\nhome: /srv/berth' };
    const { values } = resolve({ flags: { config: '/etc/berth.yaml' }, files });
    expect([values.models, values.home]).toEqual(['/etc/below', '/srv/berth']);
  });

  it('use the data folder that the system has for the user', () => {
    expect(resolve().values.home).toBe('/home/ada/.local/share/berth');
    expect(resolve({ env: { XDG_DATA_HOME: '/data' } }).values.home).toBe('/data/berth');
    expect(resolve({ env: { XDG_DATA_HOME: 'not/absolute' } }).values.home).toBe(
      '/home/ada/.local/share/berth',
    );
    expect(resolve({ platform: 'darwin' }).values.home).toBe('/home/ada/Library/Application Support/berth');
    expect(resolve({ platform: 'win32', userHome: 'C:\\Users\\ada' }).values.home).toBe(
      'C:\\Users\\ada\\AppData\\Local\\berth',
    );
  });

  it('count an empty variable as not set', () => {
    expect(resolve({ env: { BERTH_PORT: '' } }).from.port).toBe('default');
  });

  it.each([
    [{ env: { BERTH_RAMMAX: '1' } }, /BERTH_RAMMAX.*BERTH_RAM_MAX/],
    [{ env: { BERTH_PORT: '70000' } }, /BERTH_PORT must be a whole number from 0 to 65535, not "70000"/],
    [{ env: { BERTH_PORT: '1e3' } }, /BERTH_PORT must be a whole number/],
    [{ flags: { 'ram-max': 'lots' } }, /--ram-max must be a size such as 12GiB, not "lots"/],
    [{ flags: { 'ram-max': '0' } }, /--ram-max must be a size/],
    [{ flags: { 'cpu-max': '0' } }, /--cpu-max must be a whole number from 1 to 4096/],
    [{ env: { EVENTSTORE_URL: 'kurrent://x' } }, /EVENTSTORE_URL must be a URL such as esdb:\/\//],
    [{ env: { DATABASE_URL: 'mysql://u:secret@h/d' } }, /^DATABASE_URL must be(?!.*secret)/],
    [{ flags: { log: 'loud' } }, /--log must be one of trace, debug/],
    [{ flags: { host: 'http://x' } }, /--host must be an address/],
    [{ flags: { config: 'gone.yaml' } }, /\/work\/gone\.yaml is not there/],
  ])('refuse %j with the reason and the way out', (given, words) => {
    expect(() => resolve(given)).toThrow(words);
  });

  const yaml = (text: string) => () => resolve({ flags: { config: '/b.yaml' }, files: { '/b.yaml': text } });
  it.each([
    ['prot: 1', /prot in \/b\.yaml is no setting; did you mean port\?/],
    ['BERTH_RAM_MAX: 1GiB', /did you mean ram-max\?/],
    ['ramMax: 1GiB', /did you mean ram-max\?/],
    ['zzzzzzzzzzzzzzz: 1', /they are home, port/],
    ['port: [1, 2]', /port in \/b\.yaml must be a single value, not \[1,2\]/],
    ['port: 0x50z', /port in \/b\.yaml must be a whole number/],
    ['- port', /must hold lines such as/],
    ['port: 1\nport: 2', /no valid YAML: .*unique/],
    ['port: "1', /no valid YAML: .*line 1/],
  ])('refuse the settings file %j', (text, words) => {
    expect(yaml(text)).toThrow(words);
  });

  it('read an empty settings file as one without settings', () => {
    expect(yaml('# nothing\n')().from.port).toBe('default');
    expect(yaml('port:\n')().from.port).toBe('default');
  });

  it('refuse a home in the berth.yaml of another home', () => {
    const files = { '/h/berth.yaml': 'home: /other' };
    expect(() => resolve({ flags: { home: '/h' }, files })).toThrow(/names another home \(\/other\)/);
  });

  it('have names, variables and flags that are each used once', () => {
    expect(new Set(settingNames).size).toBe(settingNames.length);
    expect(new Set(settingsTable.map(({ env }) => env)).size).toBe(settingsTable.length);
  });
});
