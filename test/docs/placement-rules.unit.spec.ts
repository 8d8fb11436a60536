import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = readFileSync(join(root, 'docs/reference/placement-rules.md'), 'utf8');

interface Row {
  readonly section: string;
  readonly rule: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

const isRow = (line: string): boolean =>
  line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| rule ');

const rows: readonly Row[] = page.split(/^## /m).flatMap((part) => {
  const lines = part.split('\n');
  return lines.filter(isRow).map((line) => {
    const [rule = '', shown = ''] = line.slice(2, -2).split(' | ');
    const tests = shown.split('<br>').map((one) => {
      const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(one.trim()) ?? [];
      return { file, title };
    });
    return { section: lines[0] ?? '', rule: rule.trim(), tests };
  });
});

const sources = new Map<string, string | undefined>();
function sourceOf(file: string): string | undefined {
  if (!sources.has(file)) {
    const path = [join(root, 'libs/placement/src', file), join(root, file)].find(existsSync);
    sources.set(file, path && readFileSync(path, 'utf8'));
  }
  return sources.get(file);
}

/** A title stands in quotes of some kind, from its beginning; a long one may be told by that alone. */
const holds = (source: string, title: string): boolean =>
  ["'", '"', '`'].some((quote) => source.includes(quote + title));

describe('the page of rules', () => {
  it('names tests that are there, by file and title', () => {
    const missing = rows.flatMap(({ rule, tests }) =>
      tests
        .filter(({ file, title }) => title === '' || !holds(sourceOf(file) ?? '', title))
        .map(({ file, title }) => `${rule}: ${file}: ${title}`),
    );
    expect(missing).toEqual([]);
  });

  it('has every section of the rules, and no rule twice in one', () => {
    const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual([
      'Settings',
      'Need',
      'Room',
      'Context',
      'Eviction',
      'The ladder and the choice',
      'The queue',
      'Cores',
      'Several workers',
      'Refusals',
      'Whatever the state',
    ]);
    expect(rows.length).toBeGreaterThan(130);
    const names = rows.map(({ section, rule }) => `${section}: ${rule}`);
    expect(names.filter((name, at) => names.indexOf(name) < at)).toEqual([]);
  });
});
