// Installs and builds when something changed, and only then. No dependencies: it runs before they are there.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isFresh } from './bundle.mjs';

const root = dirname(fileURLToPath(import.meta.url));
const at = (...parts) => join(root, ...parts);
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  fail(`Node ${process.versions.node} is too old: Berth needs Node 20.19 or newer (https://nodejs.org).`);
}

const began = performance.now();
const INSTALL_STAMP = at('node_modules', '.berth-install.json');
const BUILD_STAMP = at('dist', '.berth-build.json');
const PAGE_STAMP = at('dist', '.berth-dashboard.json');
const LOCK = at('.berth', 'bootstrap.lock');
const ALWAYS = ['tsconfig.json', 'tsconfig.base.json', 'package.json', 'bundle.mjs'];
const DASHBOARD = 'apps/dashboard';
/** What the compiler builds, and what Vite builds; the page is made of the pure libs too. */
const CODE = {
  stamp: BUILD_STAMP,
  output: at('dist', 'apps', 'api'),
  folders: ['apps', 'libs', 'schema', 'test'],
  not: DASHBOARD,
  names: /\.ts$|^tsconfig.*\.json$/,
};
const PAGE = {
  stamp: PAGE_STAMP,
  output: at('dist', 'apps', 'dashboard'),
  folders: [DASHBOARD, 'libs/domain/src', 'libs/placement/src'],
  names: /(?<!\.spec)\.(ts|svelte|css|html|svg|json)$/,
};

class StepFailed extends Error {}
const running = new Set();

const lockHash = hash(readFileSync(at('package-lock.json')));
if (isInstalled() && isBuilt(CODE) && isBuilt(PAGE)) {
  console.log(`install and build: nothing changed (${seconds(began)})`);
} else {
  const release = await takeLock();
  try {
    // Another bootstrap may have done it while this one waited.
    if (!isInstalled()) await install();
    if (!isBuilt(CODE) || !isBuilt(PAGE)) await build();
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    console.error(`berth: ${error.message}`);
    process.exitCode = 1;
  } finally {
    release();
  }
}

async function install() {
  // npm names its own script when it started us; else the one on the path is taken.
  const npm = process.env.npm_execpath?.endsWith('.js')
    ? [process.execPath, process.env.npm_execpath]
    : [process.platform === 'win32' ? 'npm.cmd' : 'npm'];
  const command = [...npm, 'ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  await step('install', [command], {
    next: 'Check the network (the packages come from the npm registry once) and run the same command again.',
  });
  writeFileSync(INSTALL_STAMP, JSON.stringify({ lockHash, platform: platform() }));
}

/** The compiler uses one core, so Vite works beside it: it reads the sources and not what the compiler makes. */
async function build() {
  const tools = (...parts) => [process.execPath, at('node_modules', ...parts)];
  const builds = [
    [CODE, [...tools('typescript', 'bin', 'tsc'), '-b']],
    [PAGE, [...tools('vite', 'bin', 'vite.js'), 'build', DASHBOARD, '--logLevel', 'warn']],
  ].filter(([part]) => !isBuilt(part));
  // Taken before anything is read: what changes meanwhile is built the next time.
  const stamps = builds.map(([part]) => ({
    fingerprint: fingerprint(part),
    content: contentHash(part),
    lockHash,
  }));
  await step(
    'build',
    builds.map(([, command]) => command),
    { next: 'Mend what is said above, or take the sources back to a state that builds.' },
  );
  if (builds.some(([part]) => part === CODE)) {
    await step('bundle', [[process.execPath, at('bundle.mjs')]], {
      next: 'Mend what it says; `node bundle.mjs` does this step alone.',
    });
  }
  mkdirSync(at('dist'), { recursive: true });
  builds.forEach(([part], i) => writeFileSync(part.stamp, JSON.stringify(stamps[i])));
}

function isInstalled() {
  const stamp = readJson(INSTALL_STAMP);
  if (stamp !== undefined) return stamp.lockHash === lockHash && stamp.platform === platform();
  // Installed by hand: npm's own record says whether it was from this lock.
  const installed = readJson(at('node_modules', '.package-lock.json'))?.packages;
  if (installed === undefined) return false;
  const wanted = Object.entries(readJson(at('package-lock.json')).packages).filter(([path]) => path !== '');
  const same = wanted.every(([path, { version, optional }]) =>
    installed[path] === undefined ? optional === true : installed[path].version === version,
  );
  if (same) tryWrite(INSTALL_STAMP, { lockHash, platform: platform() });
  return same;
}

function isBuilt(part) {
  const files = sources(part);
  // A checkout without a dashboard has none to build.
  if (part === PAGE && !files.some((path) => path.startsWith(DASHBOARD))) return true;
  const stamp = readJson(part.stamp);
  if (stamp === undefined || stamp.lockHash !== lockHash || !existsSync(part.output)) return false;
  if (part === CODE && !isFresh()) return false;
  const now = fingerprint(part);
  if (stamp.fingerprint === now) return true;
  // Touched, or checked out again, is not changed.
  if (stamp.content !== contentHash(part)) return false;
  tryWrite(part.stamp, { ...stamp, fingerprint: now });
  return true;
}

/** Path, size and time of every source: cheap, and enough to see that nothing changed. */
function fingerprint(part) {
  return hash(
    sources(part)
      .map((path) => {
        const { size, mtimeMs } = statSync(at(path));
        return `${path} ${size} ${mtimeMs}`;
      })
      .join('\n'),
  );
}

function contentHash(part) {
  const all = createHash('sha256');
  for (const path of sources(part)) all.update(`${path}\0`).update(readFileSync(at(path)));
  return all.digest('hex');
}

function sources({ folders, not, names }) {
  const found = [...ALWAYS];
  const walk = (folder) => {
    for (const entry of readdirSync(at(folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules' && path !== not) walk(path);
      } else if (names.test(entry.name)) found.push(path);
    }
  };
  for (const folder of folders) if (existsSync(at(folder))) walk(folder);
  return found.sort();
}

/** Runs the commands of one step beside each other, quiet unless one fails: then the end of what it said, and what to do. */
async function step(name, commands, { next }) {
  const started = performance.now();
  process.stdout.write(`${name} … `);
  const ends = await Promise.all(commands.map(([file, ...args]) => run(file, args)));
  const failed = ends.find(({ code }) => code !== 0);
  if (failed === undefined) {
    console.log(seconds(started));
    return;
  }
  const { code, output } = failed;
  console.log(`failed after ${seconds(started)}`);
  console.error(output.trimEnd().split('\n').slice(-30).join('\n'));
  throw new StepFailed(`The step "${name}" failed (${code}). ${next}`);
}

function run(file, args) {
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: file.endsWith('.cmd'),
    });
    running.add(child);
    let output = '';
    const keep = (chunk) => (output = (output + chunk).slice(-64_000));
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => resolve({ code: error.code ?? 'error', output: error.message }));
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code: code ?? signal, output });
    });
  });
}

/** One bootstrap at a time in this folder; one that was killed leaves a lock that is taken over. */
async function takeLock() {
  mkdirSync(dirname(LOCK), { recursive: true });
  let said = false;
  for (;;) {
    try {
      writeFileSync(LOCK, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const holder = Number(readText(LOCK));
    // An empty file is one that its owner is just writing.
    if (holder > 0 && !isAlive(holder)) rmSync(LOCK, { force: true });
    else {
      if (!said)
        console.log(`waiting for another start of Berth in this folder (pid ${holder || 'unknown'})`);
      said = true;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
  const release = () => {
    if (Number(readText(LOCK)) === process.pid) rmSync(LOCK, { force: true });
  };
  // Ctrl-C reaches the step as well; another signal may have been meant for us alone.
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ]) {
    process.once(signal, () => {
      for (const child of running) child.kill(signal);
      release();
      process.exit(code);
    });
  }
  return release;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** A stamp is only a memory: a folder that cannot be written costs a comparison more each time. */
function tryWrite(path, value) {
  try {
    writeFileSync(path, JSON.stringify(value));
  } catch {
    // Read-only, or installed by another user.
  }
}

function hash(data) {
  return createHash('sha256').update(data).digest('hex');
}
function platform() {
  return `${process.platform}-${process.arch}`;
}
function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(since === began ? 2 : 1)} s`;
}
function fail(message) {
  console.error(`berth: ${message}`);
  process.exit(1);
}
