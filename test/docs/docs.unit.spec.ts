import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '#domain/errors.js';
import { RUNGS } from '#domain/placement-terms.js';
import { KNOWN_OPTIONS } from '#placement/model-name.js';
import { PROCESSES } from '../../apps/cli/src/commands/processes.js';
import { READERS } from '../../apps/cli/src/commands/readers.js';
import { replay } from '../../apps/cli/src/commands/replay.js';
import { settingsReference } from '../../apps/cli/src/settings/print.js';
import { ENDPOINTS } from '../../apps/api/src/gateway/endpoints.js';
import { eventShapes } from './event-sources.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const pages = [
  join(root, 'README.md'),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(root, 'docs', name)),
];

/** The anchor that a heading gets on the usual forges. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/`/g, '')
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

const anchorsOf = (page: string): readonly string[] =>
  [...readFileSync(page, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));

const brokenLinks = (page: string): readonly string[] =>
  [...readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : resolve(dirname(page), path);
      if (!existsSync(file)) return true;
      return anchor !== undefined && statSync(file).isFile() && !anchorsOf(file).includes(anchor);
    });

describe('the documentation', () => {
  it.each(pages.map((page) => [relative(root, page), page]))('has no dead link in %s', (_, page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it('names tests of the log’s semantics that are there, at least one for each rule', () => {
    const rows = read('docs/reference/log-semantics.md')
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.startsWith('| topic') && !line.startsWith('| ---'));
    expect(rows.length).toBeGreaterThan(20);
    for (const row of rows) {
      const shown = row.split(' | ').at(-1) ?? '';
      const named = [...shown.matchAll(/\]\(\.\.\/\.\.\/([^)]+)\): ([^[|]+)/g)].flatMap(
        ([, file = '', tests = '']) =>
          [...tests.matchAll(/\*([^*]+)\*/g)].map(([, name = '']) => ({ name, source: read(file) })),
      );
      expect([row, named.length > 0]).toEqual([row, true]);
      for (const { name, source } of named) expect([name, source.includes(name)]).toEqual([name, true]);
    }
  });

  it('lists the settings as the table of settings renders them', () => {
    expect(read('docs/reference/settings.md').trim()).toBe(settingsReference().trim());
  });

  it('names every event type with every field of its data', () => {
    const page = read('docs/reference/events.md');
    const rows = page.split('\n').filter((line) => line.startsWith('|'));
    const working = page.slice(
      page.indexOf('share their working'),
      page.indexOf('fields besides the working'),
    );
    const shapes = eventShapes(join(root, 'libs/domain/src/events'));
    expect(shapes.map((shape) => shape.type)).toContain('CallFinished');
    const missing = shapes.flatMap(({ type, fields }) => {
      const row = rows.find((line) => line.includes(`\`${type}\``));
      if (row === undefined) return [type];
      const text = ['PlacementDecided', 'PlacementRefused'].includes(type) ? row + working : row;
      return fields
        .map(({ name, optional }) => `\`${name}${optional ? '?' : ''}\``)
        .filter((field) => !text.includes(field))
        .map((field) => `${type} ${field}`);
    });
    expect(missing).toEqual([]);
  });

  it('is right that Berth writes every type of event', () => {
    const writers = ['apps/api/src', 'apps/worker-agent/src', 'libs/domain/src', 'libs/events/src']
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
          .filter(
            (name) => name.endsWith('.ts') && !/\.spec\.ts$|testing\/|live\/|check\/|^events\//.test(name),
          )
          .map((name) => read(join(folder, name))),
      )
      .join('\n');
    const unwritten = eventShapes(join(root, 'libs/domain/src/events'))
      .map(({ type }) => type)
      .filter((type) => !new RegExp(`type: [^;{}\n]*'${type}'`).test(writers));
    expect(unwritten).toEqual([]);
  });

  it('names every error code with its status', () => {
    const page = read('docs/reference/http.md');
    const missing = Object.entries(ERROR_CODES)
      .map(([code, { status }]) => `| \`${code}\` | ${status} |`)
      .filter((row) => !page.includes(row));
    expect(missing).toEqual([]);
  });

  it('names every route that is forwarded and every option of a model name', () => {
    const page = read('docs/reference/http.md');
    const options = KNOWN_OPTIONS.split(', ').map((option) => option.split('=')[0] ?? option);
    const missing = [...ENDPOINTS.keys(), ...options].filter((name) => !page.includes(name));
    expect(missing).toEqual([]);
  });

  it('names every route of the admin API', () => {
    const page = read('docs/reference/http.md');
    const folder = join(root, 'apps/api/src');
    const controllers = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.controller.ts'))
      .flatMap((name) => [...readFileSync(join(folder, name), 'utf8').matchAll(/@Controller\('([^']+)'\)/g)])
      .map(([, path = '']) => `\`GET /${path}`);
    expect(controllers).toContain('`GET /admin/calls');
    expect(controllers.filter((route) => !page.includes(route))).toEqual([]);
  });

  it('names every command', () => {
    const page = read('docs/reference/commands.md');
    const missing = [...READERS, ...PROCESSES, replay]
      .map(({ name }) => `berth ${name}`)
      .filter((name) => !page.includes(`\`${name}`));
    expect(missing).toEqual([]);
  });

  it('explains every rung of the ladder', () => {
    const page = read('docs/explanation/placement.md');
    expect(RUNGS.filter((rung) => !page.includes(`| \`${rung}\` |`))).toEqual([]);
  });
});
