import { expect, it } from 'vitest';
import { maskUrl } from './check-value.js';
import { printConfig, settingsHelp, settingsReference } from './print.js';
import { resolveSettings } from './resolve.js';
import { settingsTable } from './table.js';

it.each([
  ['postgres://user:hunter2@db/berth', 'postgres://user:***@db/berth'],
  ['postgres://user:p:a@ss@db/berth?password=x&application_name=y', null],
  ['esdb://admin:change%21@a:1,b:2?tls=true', 'esdb://admin:***@a:1,b:2?tls=true'],
  ['postgres://user@db:5432/berth', 'postgres://user@db:5432/berth'],
  ['postgres:///berth?host=/tmp&password=hunter2', 'postgres:///berth?host=/tmp&password=***'],
])('shows %s without its secret', (url, shown) => {
  if (shown !== null) expect(maskUrl(url)).toBe(shown);
  expect(maskUrl(url)).not.toMatch(/hunter2|p:a|ss@|change|password=x/);
});

it('prints every setting with its value and where it came from', () => {
  const text = printConfig(
    resolveSettings({
      flags: { port: '9123' },
      env: { DATABASE_URL: 'postgres://u:hunter2@h/d' },
      platform: 'linux',
      userHome: '/home/ada',
      cwd: '/',
      readFile: () => undefined,
    }),
  );
  for (const { env } of settingsTable) expect(text).toContain(env);
  expect(text).toMatch(/^BERTH_PORT\s+9123\s+flag --port$/m);
  expect(text).toMatch(/^EVENTSTORE_URL\s+\(an embedded event log\)\s+default$/m);
  expect(text).not.toContain('hunter2');
});

it('names every setting in the help and in the reference', () => {
  for (const { name, env } of settingsTable) {
    expect(settingsHelp()).toContain(`--${name} `);
    expect(settingsReference()).toContain(`\`${env}\``);
  }
});
