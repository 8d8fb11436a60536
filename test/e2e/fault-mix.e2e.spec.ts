import { describe, expect, it } from 'vitest';
import { runMix } from '../faults/run.js';

const minutes = Number(process.env['BERTH_FAULT_MINUTES'] ?? (process.env['CI'] === 'true' ? 3 : 1));
const seed = Number(process.env['BERTH_FAULT_SEED'] ?? Math.floor(Math.random() * 1e9));

describe('a mix of faults', () => {
  it(
    `leaves nothing wrong (seed ${seed}, ${minutes} min)`,
    async () => {
      let last = '';
      const report = await runMix({ seed, minutes, say: (line) => (last = line) });
      process.stderr.write(`seed ${seed}, ${minutes} min; ${last}\n`);
      expect(report, JSON.stringify(report)).toMatchObject({ wrong: [], violations: [] });
      // From the log alone each decision comes out as it was taken, whatever died meanwhile.
      const { decisions, differences } = report.reproduced;
      expect(differences.length, JSON.stringify(differences)).toBeLessThanOrEqual(
        Math.max(1, decisions / 100),
      );
      expect(report.calls['answered'] ?? 0).toBeGreaterThan(0);
      expect(Object.entries(report.faults).filter(([, times]) => times === 0)).toEqual([]);
    },
    minutes * 60_000 + 900_000,
  );
});
