import { BerthFailure, berthError } from '#domain/errors.js';
import { openEventLog } from '#events/connect.js';
import { readConfig } from '#runtime/config.js';
import { runProcess } from '#runtime/lifecycle.js';
import { createLogger } from '#runtime/logger.js';
import { VIEWS_SCHEMA } from '#schema/connect.js';
import { Projector } from './run/projector.js';

const log = createLogger('projector');
/** How long a start waits for Postgres and its turn; the front door does not need the views, so longer is no failure. */
const READY_WITHIN_MS = 10_000;

await runProcess('projector', log, async () => {
  const config = readConfig(process.env);
  if (config.databaseUrl === undefined) {
    throw new BerthFailure(
      berthError(
        'invalid_request',
        'DATABASE_URL is not set; name a Postgres, or run `berth up`, which starts one.',
        { param: 'DATABASE_URL' },
      ),
    );
  }
  const events = openEventLog({
    url: config.eventstoreUrl,
    by: 'projector',
    now: () => Date.now(),
    log: {
      info: (message) => log.info(message),
      warn: (message) => log.warn(message),
      error: (message) => log.error(message),
    },
  });
  const projector = new Projector({ databaseUrl: config.databaseUrl, schema: VIEWS_SCHEMA, events, log });
  const running = projector.run();
  const views = await Promise.race([
    projector.following.then(() => 'following'),
    projector.standby.then(() => 'standby'),
    after(READY_WITHIN_MS, 'waiting'),
    running.then(() => 'stopped'),
  ]);
  // What ends it later, without being asked, needs a person: the supervisor starts it again and shows the reason.
  running.catch((error: unknown) => {
    log.fatal({ err: error }, error instanceof Error ? error.message : String(error));
    process.exit(1);
  });
  return {
    details: { views },
    stop: async () => {
      await projector.stop();
      await events.close();
    },
  };
});

function after<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms).unref());
}
