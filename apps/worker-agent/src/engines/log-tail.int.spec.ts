import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cutLog, readLogStart } from './log-tail.js';

const folder = mkdtempSync(join(tmpdir(), 'berth-log-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the log file of an engine', () => {
  it('is cut in place to its load-time part when it is too long, and goes on behind it', () => {
    const file = join(folder, 'long.log');
    writeFileSync(file, `I berth: first line\n${'x'.repeat(600_000)}`);
    cutLog(file, 700_000);
    expect(statSync(file).size).toBeGreaterThan(600_000);
    cutLog(file, 500_000);
    expect(statSync(file).size).toBe(256 * 1024);
    appendFileSync(file, 'on');
    expect(readLogStart(file).startsWith('I berth: first line')).toBe(true);
  });

  it('is empty when there is none', () => {
    expect(readLogStart(join(folder, 'none.log'))).toBe('');
    expect(() => cutLog(join(folder, 'none.log'))).not.toThrow();
  });
});
