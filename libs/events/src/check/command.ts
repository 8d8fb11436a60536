import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthFailure } from '#domain/errors.js';
import { openEventLog } from '../connect.js';
import { checkInvariants } from './invariants.js';

/**
 * `berth log check [--at-rest]`: holds the log at EVENTSTORE_URL, or the embedded one of a Berth that runs, against the
 * invariants of the catalogue and its rules for every event. Exit codes: 0 all hold, 1 one does not or the log is out of reach.
 */
async function run(): Promise<number> {
  const atRest = process.argv.slice(2).includes('--at-rest');
  const log = openEventLog({ url: address(), by: 'cli', now: Date.now });
  try {
    const violations = await checkInvariants(log, { atRest });
    for (const { invariant, stream, revision, message } of violations) {
      const rule = invariant === 'form' ? 'form of events' : `invariant ${invariant}`;
      process.stdout.write(`${rule}, ${stream} at ${revision}: ${message}\n`);
    }
    process.stdout.write(
      violations.length === 0
        ? 'Every invariant holds. Every event has the form of its type.\n'
        : `${violations.length} violation${violations.length === 1 ? '' : 's'} of the invariants.\n`,
    );
    return violations.length === 0 ? 0 : 1;
  } finally {
    await log.close();
  }
}

function address(): string {
  const { EVENTSTORE_URL: url, BERTH_HOME: home } = process.env;
  if (url !== undefined && url !== '') return url;
  try {
    return readFileSync(join(home ?? '', 'event-node', 'connection'), 'utf8').trim();
  } catch {
    throw new Error(
      `There is no event log below ${home ?? 'BERTH_HOME'}. Start Berth there with \`berth up\`, or name a log in EVENTSTORE_URL.`,
    );
  }
}

try {
  process.exitCode = await run();
} catch (error) {
  const said = error instanceof Error ? error.message : String(error);
  const out = error instanceof BerthFailure && error.error.code === 'event_log_unavailable';
  const sentence = out
    ? 'The event log does not answer. Start Berth with `berth up`, or name a log in EVENTSTORE_URL.'
    : said;
  process.stderr.write(`berth: ${sentence}\n`);
  process.exitCode = 1;
}
