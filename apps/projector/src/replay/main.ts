import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BerthFailure } from '#domain/errors.js';
import { formatSeconds } from '#domain/units.js';
import type { ReplayLine } from '#domain/wire/index.js';
import { openEventLog } from '#events/connect.js';
import { isUnreachable, VIEWS_SCHEMA } from '#schema/connect.js';
import { deriveFacts } from './facts.js';
import { factsText } from './facts-text.js';
import { progressOf } from './progress.js';
import { rebuild, type ReplayOptions } from './rebuild.js';
import { differencePrinter } from './report.js';
import { verify } from './verify.js';

/**
 * `berth replay [--verify | --facts] [--json]`: folds the log again. Exit codes: 0 done, and nothing differs; 1 something
 * differs, or it did not work.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const sayObject = (line: ReplayLine): void => say(JSON.stringify(line));

async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      verify: { type: 'boolean', default: false },
      facts: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const { json } = values;
  const log = openEventLog({ url: logAddress(), by: 'cli', now: Date.now });
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => stopping.abort(new Error('It was stopped; the live views are as they were.')));
  const bar = progressOf({ json, stderr: process.stderr, say: sayObject, now: () => performance.now() });
  const begun = performance.now();
  const took = () => formatSeconds((performance.now() - begun) / 1000);
  try {
    if (values.facts) {
      let stepped = false;
      const report = await deriveFacts(log, (events, position, end) => {
        if (!stepped) bar.step('fold', end);
        stepped = true;
        bar.fold(events, position);
      });
      bar.end();
      say(json ? JSON.stringify(report) : factsText(report));
      return 0;
    }
    const options: ReplayOptions = {
      log,
      databaseUrl: databaseAddress(),
      live: VIEWS_SCHEMA,
      onStep: (step, end) => bar.step(step, end),
      onProgress: (events, position) => bar.fold(events, position),
      onSetAside: ({ event, stream, revision }, error) =>
        void process.stderr.write(
          `berth: no view could take ${event.type} of ${stream} at ${revision}: ${error.message}\n`,
        ),
      signal: stopping.signal,
    };
    if (values.verify) {
      const found = await verify(options, differencePrinter(json, say));
      bar.end();
      const { events, rows, differences, position } = found;
      if (json) sayObject({ verified: { events, rows, differences, position: String(position.commit) } });
      else
        say(
          differences === 0
            ? `Every one of ${rows.toLocaleString('en')} rows is what ${events.toLocaleString('en')} events give (${took()}).`
            : `${differences.toLocaleString('en')} rows differ from what ${events.toLocaleString('en')} events give (${took()}). \`berth replay\` folds the views anew.`,
        );
      return differences === 0 ? 0 : 1;
    }
    const { events, setAside, position } = await rebuild(options);
    bar.end();
    if (json) sayObject({ replayed: { events, setAside, position: String(position.commit) } });
    else {
      say(`The views were folded anew from ${events.toLocaleString('en')} events (${took()}).`);
      if (setAside > 0) say(`${setAside} events fit no view; they are kept in set_aside_events.`);
    }
    return 0;
  } finally {
    bar.end();
    await log.close();
  }
}

/** The log that is named, else the embedded one of a Berth that runs, under the credential that can only read it. */
function logAddress(): string {
  const { EVENTSTORE_URL: url, BERTH_HOME: home } = process.env;
  if (url !== undefined && url !== '') return url;
  const folder = join(home ?? '', 'event-node');
  const file = ['connection-projector', 'connection'].map((name) => join(folder, name)).find(existsSync);
  if (file === undefined)
    throw new Error(
      `There is no event log below ${home ?? 'BERTH_HOME'}. Start Berth there with \`berth up\`, or name a log in EVENTSTORE_URL.`,
    );
  return readFileSync(file, 'utf8').trim();
}

function databaseAddress(): string {
  const { DATABASE_URL: url } = process.env;
  if (url !== undefined && url !== '') return url;
  throw new Error(
    'No Postgres of a running Berth was found. Start Berth with `berth up`, or name a Postgres in DATABASE_URL.',
  );
}

function sentenceOf(error: unknown): string {
  if (error instanceof BerthFailure && error.error.code === 'event_log_unavailable')
    return 'The event log does not answer. Start Berth with `berth up`, or name a log in EVENTSTORE_URL.';
  const said = error instanceof Error ? error.message : String(error);
  return isUnreachable(error)
    ? `Postgres is out of reach (${said}). The live views are as they were; start it and try again.`
    : said;
}

try {
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`berth: ${sentenceOf(error)}\n`);
  process.exitCode = 1;
}
