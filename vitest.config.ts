import { defineConfig } from 'vitest/config';

// Tests are named by weight: unit (no I/O), int (a real server or file of ours), e2e (the whole stack).
// The `source` condition resolves `#domain/*.js` and its siblings to TypeScript, so that unit and int tests need no build;
// what runs as a process of its own is started from `dist`.
const shared = {
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'], externalConditions: ['node'] } },
} as const;

const setupFiles = ['test/support/fast-check.ts'];

const places = (weight: string) => [
  `libs/**/*.${weight}.spec.ts`,
  `apps/**/*.${weight}.spec.ts`,
  `schema/**/*.${weight}.spec.ts`,
  `test/**/*.${weight}.spec.ts`,
];

export default defineConfig({
  ...shared,
  test: {
    exclude: ['**/node_modules/**', '**/dist/**'],
    reporters: ['default'],
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          // Nothing in them outlives a test: what they import is loaded once for all, a third of the time.
          isolate: false,
          setupFiles,
          include: places('unit'),
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        ...shared,
        test: {
          name: 'int',
          setupFiles,
          include: places('int'),
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        ...shared,
        test: {
          name: 'e2e',
          // One of their parts ships its TypeScript under the condition `source`, which node itself cannot run.
          server: { deps: { inline: ['ai', /@ai-sdk\//, 'eventsource-parser'] } },
          include: places('e2e'),
          testTimeout: 180_000,
          hookTimeout: 180_000,
          // Each file has stacks of its own, and waits more than it works.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
