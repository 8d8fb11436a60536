import { cpSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findBinaries, linkBeside, linkInPackage } from './binaries.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth pg bin '));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** The package as npm unpacks it: without a single link. */
function freshPackage() {
  const original = dirname(dirname(dirname(findBinaries(join(root, 'unused')).postgres)));
  const copy = join(root, 'a package');
  cpSync(original, copy, {
    recursive: true,
    filter: (path) => !isLink(path) && !path.endsWith('.a'),
  });
  const links = JSON.parse(readFileSync(join(copy, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  return { copy, links };
}
const isLink = (path: string): boolean => {
  try {
    readlinkSync(path);
    return true;
  } catch {
    return false;
  }
};
const versionOf = (copy: string, env: Record<string, string>) =>
  spawnSync(join(copy, 'native', 'bin', 'initdb'), ['--version'], { env, encoding: 'utf8' });

describe('the libraries of the embedded Postgres', () => {
  it('are completed with the links that npm left out, once and again', () => {
    const { copy, links } = freshPackage();
    expect(versionOf(copy, {}).status).not.toBe(0);
    linkInPackage(copy, links);
    linkInPackage(copy, links);
    expect(versionOf(copy, {}).stdout).toMatch(/PostgreSQL/);
  });

  it('are linked in a folder of ours when the package cannot be written', () => {
    const { copy, links } = freshPackage();
    const before = readdirSync(join(copy, 'native', 'lib'));
    const env = linkBeside(copy, links, join(root, 'links'));
    expect(linkBeside(copy, links, join(root, 'links'))).toEqual(env);
    expect(readdirSync(join(copy, 'native', 'lib'))).toEqual(before);
    expect(statSync(join(root, 'links')).mode & 0o077).toBe(0);
    expect(versionOf(copy, env).stdout).toMatch(/PostgreSQL/);
  });
});
