import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';

/** A checkout in small: the real bootstrap.mjs and bundle.mjs, with an npm, a compiler and a bundler that only leave a line of what they did. */
let root: string;

const put = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const FAKE_TSC = `
const { appendFileSync, mkdirSync, writeFileSync } = require('node:fs');
if (process.env.TSC_FAILS) { console.log('apps/a.ts(1,1): error TS1: it is wrong'); process.exit(2); }
setTimeout(() => {
  for (const folder of ['dist/apps/api', 'dist/.tsbuildinfo']) mkdirSync(folder, { recursive: true });
  writeFileSync('dist/.tsbuildinfo/apps-a.json', '{}');
  appendFileSync('done', 'build\\n');
}, 150);`;
const FAKE_BUNDLER = `
import { appendFileSync } from 'node:fs';
if (process.env.BUNDLER_FAILS) throw new Error('it cannot be joined');
export const rolldown = async () => ({ write: async () => appendFileSync('done', 'bundle\\n') });`;
const ROLLDOWN = '{"name":"rolldown","exports":"./index.mjs"}';
const FAKE_VITE = `
const { appendFileSync, mkdirSync } = require('node:fs');
mkdirSync('dist/apps/dashboard', { recursive: true }); appendFileSync('done', process.argv.slice(2, 4).join(' ') + '\\n');`;
const FAKE_NPM = `
const { appendFileSync, mkdirSync, rmSync, writeFileSync } = require('node:fs');
if (process.env.NPM_FAILS) { console.error('npm error network is unreachable'); process.exit(1); }
rmSync('node_modules', { recursive: true, force: true });
mkdirSync('node_modules/typescript/bin', { recursive: true });
writeFileSync('node_modules/typescript/bin/tsc', ${JSON.stringify(FAKE_TSC)});
mkdirSync('node_modules/rolldown');
writeFileSync('node_modules/rolldown/index.mjs', ${JSON.stringify(FAKE_BUNDLER)});
writeFileSync('node_modules/rolldown/package.json', ${JSON.stringify(ROLLDOWN)});
mkdirSync('node_modules/vite/bin', { recursive: true });
writeFileSync('node_modules/vite/bin/vite.js', ${JSON.stringify(FAKE_VITE)});
setTimeout(() => appendFileSync('done', 'install ' + process.argv[2] + '\\n'), 150);`;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth bootstrap test '));
  for (const name of ['bootstrap.mjs', 'bundle.mjs']) cpSync(join(packageRoot(), name), join(root, name));
  put('package.json', '{}');
  put('package-lock.json', JSON.stringify({ packages: { '': {}, 'node_modules/a': { version: '1.0.0' } } }));
  put('tsconfig.json', '{}');
  put('tsconfig.base.json', '{}');
  put('apps/a.ts', 'export {};');
  put('npm.js', FAKE_NPM);
  put('done', '');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const bootstrap = (env: Record<string, string> = {}) =>
  new Promise<{ code: number; text: string }>((resolve) => {
    execFile(
      process.execPath,
      [join(root, 'bootstrap.mjs')],
      { env: { PATH: process.env['PATH'], npm_execpath: join(root, 'npm.js'), ...env }, cwd: tmpdir() },
      (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), text: stdout + stderr }),
    );
  });
const steps = () => readFileSync(join(root, 'done'), 'utf8').trim().split('\n').filter(Boolean);
/** What was installed and compiled; what was compiled is joined each time. */
const done = () => steps().filter((step) => step !== 'bundle');

it('installs and builds once, says so with the times, and then only when something changed', async () => {
  const first = await bootstrap();
  expect(first.text).toMatch(/^install … \d+\.\d s\nbuild … \d+\.\d s\nbundle … \d+\.\d s\n$/);
  expect(steps()).toEqual(['install ci', 'build', 'bundle']);
  expect((await bootstrap()).text).toMatch(/nothing changed/);
  expect(steps()).toHaveLength(3);
});

it('builds again for a changed, a new and a removed source, not for one that was only touched', async () => {
  await bootstrap();
  utimesSync(join(root, 'apps/a.ts'), new Date(0), new Date(0));
  expect((await bootstrap()).text).toMatch(/nothing changed/);
  put('apps/a.ts', 'export const a = 1;');
  await bootstrap();
  put('libs/b.ts', 'export {};');
  await bootstrap();
  rmSync(join(root, 'libs/b.ts'));
  await bootstrap();
  put('tsconfig.json', '{ }');
  await bootstrap();
  expect(done()).toEqual(['install ci', 'build', 'build', 'build', 'build', 'build']);
});

it('joins the files again when they were compiled by hand after it', async () => {
  await bootstrap();
  utimesSync(join(root, 'dist/.tsbuildinfo/apps-a.json'), new Date(0), new Date(0));
  await bootstrap();
  expect(steps()).toEqual(['install ci', 'build', 'bundle', 'build', 'bundle']);
});

it('builds the dashboard beside the code, and each of them only for a change of its own', async () => {
  put('apps/dashboard/src/app.svelte', '<h1>Berth</h1>');
  await bootstrap();
  expect(done().sort()).toEqual(['build', 'build apps/dashboard', 'install ci']);
  put('done', '');
  expect((await bootstrap()).text).toMatch(/nothing changed/);
  put('apps/dashboard/src/app.svelte', '<h1>Berths</h1>');
  await bootstrap();
  expect(done()).toEqual(['build apps/dashboard']);
  put('apps/a.ts', 'export const a = 2;');
  await bootstrap();
  expect(done()).toEqual(['build apps/dashboard', 'build']);
});

it('installs and builds again when the lock changed', async () => {
  await bootstrap();
  put('package-lock.json', JSON.stringify({ packages: { 'node_modules/a': { version: '1.0.1' } } }));
  await bootstrap();
  expect(done()).toEqual(['install ci', 'build', 'install ci', 'build']);
});

it('accepts what was installed by hand from the same lock, and nothing else', async () => {
  put('node_modules/typescript/bin/tsc', FAKE_TSC);
  put('node_modules/rolldown/index.mjs', FAKE_BUNDLER);
  put('node_modules/rolldown/package.json', ROLLDOWN);
  const hidden = (version: string) =>
    put('node_modules/.package-lock.json', JSON.stringify({ packages: { 'node_modules/a': { version } } }));
  hidden('1.0.0');
  await bootstrap();
  expect(done()).toEqual(['build']);
  rmSync(join(root, 'node_modules/.berth-install.json'));
  hidden('0.9.0');
  await bootstrap();
  expect(done()).toEqual(['build', 'install ci']);
});

it('fails with what the step said and the next step, and goes on from there the next time', async () => {
  const offline = await bootstrap({ NPM_FAILS: '1' });
  expect(offline.code).toBe(1);
  expect(offline.text).toMatch(
    /install … failed after .*\nnpm error network is unreachable\n.*Check the network/,
  );
  const broken = await bootstrap({ TSC_FAILS: '1' });
  expect(broken.code).toBe(1);
  expect(broken.text).toMatch(/error TS1: it is wrong/);
  const parted = await bootstrap({ BUNDLER_FAILS: '1' });
  expect(parted.code).toBe(1);
  expect(parted.text).toMatch(/it cannot be joined[^]*`node bundle\.mjs`/);
  const whole = await bootstrap();
  expect(whole.code).toBe(0);
  expect(steps()).toEqual(['install ci', 'build', 'build', 'bundle']);
});

it('does each step once when two start at once', async () => {
  const both = await Promise.all([bootstrap(), bootstrap(), bootstrap()]);
  expect(both.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(both.some(({ text }) => text.includes('waiting for another start'))).toBe(true);
  expect(done()).toEqual(['install ci', 'build']);
});

it('takes over the lock of one that was killed', async () => {
  put('.berth/bootstrap.lock', String(2 ** 22 + 1));
  expect((await bootstrap()).code).toBe(0);
});
