import { parseArgs } from 'node:util';
import { runMix } from './run.js';

/** `node dist/test/faults/main.js --seed N --minutes M`: prints each fault, then the report; 1 when anything is wrong. */
const { values } = parseArgs({ options: { seed: { type: 'string' }, minutes: { type: 'string' } } });
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
const minutes = Number(values.minutes ?? 3);
if (!Number.isSafeInteger(seed) || !(minutes > 0)) {
  process.stderr.write('Write: node dist/test/faults/main.js --seed N --minutes M\n');
  process.exit(2);
}
const say = (line: string) => void process.stdout.write(`${line}\n`);
say(`seed ${seed}, ${minutes} min`);
const report = await runMix({ seed, minutes, say });
say(JSON.stringify(report, null, 2));
process.exit(report.wrong.length + report.violations.length === 0 ? 0 : 1);
