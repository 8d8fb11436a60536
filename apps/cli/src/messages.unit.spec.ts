import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';
import { wrapped } from './list-table.js';
import { MOST_COLUMNS } from './table.js';
import { main } from './main.js';
import { settingsHelp } from './settings/print.js';

const COMMANDS = [
  'up',
  'status',
  'models',
  'explain',
  'residents',
  'queue',
  'calls',
  'decisions',
  'keys',
  'settings',
  'operator',
  'pull',
  'log',
  'replay',
  'what-if',
  'bench',
  'completion',
  'help',
];
const LONG = 'a-word-that-somebody-wrote-by-mistake-and-that-is-no-flag';

/** Command lines that cannot be used, and fail before anything is asked of anybody. */
const WRONG: readonly (readonly string[])[] = [
  ['stauts'],
  [LONG],
  ...COMMANDS.flatMap((name) => (name === 'pull' ? [] : [[name, `--${LONG}`]])),
  ['status', '--url'],
  ['status', '--json', '--json'],
  ['status', '--json=yes'],
  ['status', LONG],
  ['explain'],
  ['residents', '--limit', 'many'],
  ['keys', 'make'],
  ['keys', 'create'],
  ['keys', 'revoke', 'a', 'b'],
  ['settings', 'set', 'goal'],
  ['settings', 'unset'],
  ['operator', 'evcit'],
  ['operator', 'evict'],
  ['operator', 'load', 'a', 'b'],
  ['log', 'chekc'],
  ['completion', 'cmd'],
  ['help', 'stauts'],
  ['what-if', LONG],
  ['what-if', '--last', 'long'],
  ['what-if', '--last', '1h', '--from', '2026-01-01'],
  ['what-if', '--from', 'then'],
  ['what-if', '--ram-max', 'much'],
  ['what-if', '--device', 'card'],
  ['what-if', '--device', 'card=much'],
  ['what-if', '--device', 'card=2'],
  ['what-if', '--policy', 'best'],
  ['what-if', '--workers', 'two'],
  ['up', '--port', 'http'],
  ['up', '--ram-max', 'much'],
  ['up', '--eventstore-url', 'http://nowhere'],
];

describe('a command line that cannot be used', () => {
  const said: string[] = [];
  beforeEach(() => {
    said.length = 0;
    vi.spyOn(console, 'error').mockImplementation((text: string) => void said.push(text));
    vi.spyOn(console, 'log').mockImplementation((text: string) => void said.push(`printed: ${text}`));
  });
  afterEach(() => void vi.restoreAllMocks());

  it.each(WRONG.map((argv) => [argv.join(' '), argv] as const))(
    '`berth %s` ends with 2 and a sentence that fits and says how it is written',
    async (_line, argv) => {
      expect(await main(argv)).toEqual({ kind: 'exit', code: 2 });
      expect(said).toHaveLength(1);
      expect(said[0]).toMatch(/^berth: /);
      expect(said[0]).toMatch(/`berth |did you mean/);
      expect(said[0]?.split('\n').filter((line) => line.length > MOST_COLUMNS)).toEqual([]);
    },
  );
});

describe('the help on settings', () => {
  it('fits 100 columns', () => {
    expect(
      settingsHelp()
        .split('\n')
        .filter((line) => line.length > MOST_COLUMNS),
    ).toEqual([]);
  });
});

/** Every sentence that an error is made with, as the source has it; what is filled in is as long as a path. */
function sentences(): readonly (readonly [file: string, sentence: string])[] {
  const root = join(packageRoot(), 'apps/cli/src');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'),
  );
  const filled = '/home/somebody/berth/file';
  return files.flatMap((file) =>
    [
      ...readFileSync(join(root, file), 'utf8').matchAll(
        /new (?:Error|StartFailed)\(\s*(?:'([^'\n]+)'|`((?:\\`|[^`])+)`)/g,
      ),
    ].map(([, plain, template]) => {
      const text = plain ?? template?.replaceAll('\\`', "'").replace(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, filled);
      return [file, text ?? ''] as const;
    }),
  );
}

describe('the sentence of an error', () => {
  /** Said by a supervisor as a part of its own sentence, which goes on with the tail of a log and where that lies. */
  const PARTS = /^it (?:was not ready|ended)|^\/home\/\S+\n {2}its log|asked to stop|did not start: /;
  const NEXT_STEP =
    /'berth |'npm|--\w+|DATABASE_URL|\b(?:Set|Name|Start|Remove|End|move|Ask|Write|write|Send|Wait|log|logs)\b/;

  it('is found in the source', () => {
    expect(sentences().length).toBeGreaterThan(15);
  });

  it.each(sentences().map(([file, text]) => [text, file] as const))(
    'fits 100 columns and says what to do next: %s',
    (text) => {
      expect(
        wrapped(`berth: ${text}`)
          .split('\n')
          .filter((line) => line.length > MOST_COLUMNS),
      ).toEqual([]);
      if (!PARTS.test(text)) expect(text).toMatch(NEXT_STEP);
    },
  );
});
