import { defaultSettings } from '#placement/setting-levels.js';
import type { HardwareName } from './hardware.js';
import { CLAIRVOYANTS, NAMES } from './policies.js';
import { meanSecondsOf, ratioOf, type Row, rowsOf } from './report.js';
import type { Run } from './runs.js';

export interface Verdict {
  readonly what: string;
  readonly figure: string;
  readonly met: boolean;
  /** The best of Belady's rules, which know the calls to come, is short of it too. */
  readonly foreseenMisses?: boolean;
}

/** Boxes on which W1 must be served faster than by the others. */
export const TARGET_HARDWARE: readonly HardwareName[] = ['48', '96', '192', '4x48', 'mixed', '96+ram'];

const COMPARED: readonly string[] = [...Object.values(NAMES), ...CLAIRVOYANTS];

/** Whether the targets speak of the policy. */
export const isCompared = (policy: string): boolean => COMPARED.includes(policy);

/** What is to be reached on W1, and whether it is. */
export function verdicts(runs: readonly Run[]): readonly Verdict[] {
  return TARGET_HARDWARE.flatMap((hardware) => {
    const rows = rowsOf(runs.filter((r) => r.workload === 'W1' && r.hardware === hardware));
    const of = (name: string): Row | undefined => rows.find((row) => row.policy === name);
    const berth = of(NAMES.berth);
    const ollama = of(NAMES.ollama);
    const lru = of(NAMES.lru);
    if (!berth || !ollama || !lru) return [];
    const name = berth.hardware;
    const most = hardware === '96' ? 1.45 : hardware === '48' ? 1.29 : undefined;
    const ratio = ratioOf(berth);
    const refused = berth.runs.reduce((sum, r) => sum + r.metrics.refused, 0);
    const mean = meanSecondsOf(berth);
    const below = 1 - mean / meanSecondsOf(ollama);
    const foreseen = Math.min(...rows.filter((r) => CLAIRVOYANTS.includes(r.policy)).map(meanSecondsOf));
    const belowForeseen = 1 - foreseen / meanSecondsOf(ollama);
    return [
      ...(most === undefined
        ? []
        : [
            {
              what: `${name}: load seconds at most ${most} × the bound`,
              figure: ratio.toFixed(3),
              met: ratio <= most,
            },
          ]),
      {
        what: `${name}: mean time to output at least 25 % below Ollama as shipped`,
        figure:
          `${(100 * below).toFixed(1)} % below` +
          (foreseen === Infinity
            ? ''
            : `, Belady's rules with the calls to come ${(100 * belowForeseen).toFixed(1)} %`),
        met: below >= 0.25,
        foreseenMisses: belowForeseen < 0.25,
      },
      {
        what: `${name}: mean time to output below LRU`,
        figure: `${mean.toFixed(2)} s, LRU ${meanSecondsOf(lru).toFixed(2)} s`,
        met: mean < meanSecondsOf(lru),
      },
      { what: `${name}: nothing refused`, figure: `${refused} refused`, met: refused === 0 },
      longestWait(name, berth),
    ];
  });
}

/** What the overdue rule promises is in `overdue.ts`; a wait of `maxWaitSeconds` would have been refused. */
function longestWait(name: string, berth: Row): Verdict {
  const longest = Math.max(...berth.runs.map((r) => r.metrics.longestWaitSeconds));
  const overtakes = berth.runs.reduce((sum, r) => sum + r.metrics.overdue.overtakes, 0);
  const excess = Math.max(...berth.runs.map((r) => r.metrics.overdue.worstExcessSeconds));
  const { maxWaitSeconds } = defaultSettings;
  return {
    what: `${name}: longest wait within the overdue rule`,
    figure:
      `${longest.toFixed(0)} s, ${overtakes} loads ordered past an overdue call, ` +
      (excess > 0 ? `${excess.toFixed(0)} s beyond what the rule allows` : 'no wait beyond what it allows'),
    met: overtakes === 0 && excess <= 0 && longest <= maxWaitSeconds,
  };
}
