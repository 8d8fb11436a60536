import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const folder = fileURLToPath(new URL('../e2e/', import.meta.url));
const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8');
/** Those that have a Berth run; what only speaks to a server of its own has no log. */
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.e2e.spec.ts'))
  .filter((name) => /support\/stack|faults\/run/.test(textOf(name)));

describe('the end-to-end tests', () => {
  it('are found', () => expect(files.length).toBeGreaterThan(8));

  it.each(files)('hold the log to its invariants at the end: %s', (name) => {
    // The mix of faults does it itself, and reports what it found.
    const checks = /await (expectInvariants|runMix)\(/.test(textOf(name));
    expect(checks).toBe(true);
  });
});
