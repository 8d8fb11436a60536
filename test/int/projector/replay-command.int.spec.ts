import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEventLog } from '#events/connect.js';
import { type EmbeddedNode, startEmbeddedNode } from '#events/testing/embedded-node.js';
import { packageRoot } from '#runtime/process-info.js';
import { drawEvents } from '../../../apps/projector/src/testing/random-log.js';
import { type EmbeddedPostgres, startPostgres } from '../../../apps/cli/src/up/postgres/server.js';
import { appendDrawn } from '../../support/views.js';

/** `berth …` as a person types it, without any address in its environment. */
const berth = (...args: string[]) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const env = { PATH: process.env['PATH'] };
    execFile(
      process.execPath,
      [join(packageRoot(), 'bin/berth'), ...args],
      { env },
      (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr }),
    );
  });
const lastLine = (text: string): unknown => JSON.parse(text.trim().split('\n').at(-1) ?? '');

describe('berth replay over the home of a Berth that runs', () => {
  const home = mkdtempSync(join(tmpdir(), 'berth-home-'));
  let node: EmbeddedNode;
  let postgres: EmbeddedPostgres;

  beforeAll(async () => {
    [node, postgres] = await Promise.all([
      startEmbeddedNode(join(home, 'event-node'), { secure: true }),
      startPostgres({ folder: join(home, 'postgres'), logFile: join(home, 'postgres.log') }),
    ]);
    const events = openEventLog({ url: node.url, by: 'test', now: () => Date.now() });
    await appendDrawn(events, drawEvents(5, 120));
    await events.close();
  }, 120_000);
  afterAll(async () => {
    await node.stop();
    await postgres.stop();
    rmSync(home, { recursive: true, force: true });
  });

  it('finds its log and its Postgres, folds the views, proves them, and says when Postgres is gone', async () => {
    const replayed = await berth('replay', '--json', '--home', home);
    expect(replayed, replayed.stderr).toMatchObject({ code: 0 });
    expect(lastLine(replayed.stdout)).toMatchObject({
      replayed: { events: expect.any(Number) as number, setAside: 0 },
    });
    const verified = await berth('replay', '--verify', '--json', '--home', home);
    expect(verified, verified.stderr).toMatchObject({ code: 0 });
    expect(lastLine(verified.stdout)).toMatchObject({ verified: { differences: 0 } });
    await postgres.stop();
    const refused = await berth('replay', '--home', home);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('No Postgres of a running Berth was found');
  }, 120_000);
});
