import { expect, test } from 'vitest';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { START } from '@eventstore/db-client';
import { ROLES } from './access/roles.js';
import { backup, restore, scavenge, verify } from './maintenance.js';
import {
  collect,
  connect,
  disposeWithin,
  event,
  startTestNode,
  temporaryFolder,
} from './testing/node-fixture.js';

for (const insecure of [true, false]) {
  test(`a running node (${insecure ? 'plain' : 'TLS'}) is copied, checked and scavenged through its folder`, async () => {
    const running = await startTestNode({ insecure });
    const { client, dataDir } = running;
    await client.appendToStream('kept-1', [event(), event(), event()]);
    await client.setStreamMetadata('kept-1', { maxCount: 1 });
    const target = join(dataDir, 'backup');
    const copied = await backup(dataDir, target);
    const position = (await client.appendToStream('late-1', event())).position?.commit ?? 0n;
    expect(copied.endPosition).toBeLessThan(Number(position));
    expect(copied.bytes).toBe(statSync(join(target, 'log.db')).size);
    await expect(backup(dataDir, target)).rejects.toThrow(/backup in .* already/);
    expect(await scavenge(dataDir)).toMatchObject({ removedEvents: 2, streams: 1 });
    const report = await verify(dataDir);
    expect(report).toMatchObject({ faults: [], events: 5 });
    await running.stop();
  });
}

test('a backup that is restored is the log as it was, under a new identity', async () => {
  const running = await startTestNode();
  await running.client.appendToStream('log-identity', event('LogCreated'), { expectedRevision: 'no_stream' });
  await running.client.appendToStream('kept-1', [event('A'), event('B')]);
  const [target, place] = [temporaryFolder(), temporaryFolder()];
  await running.node.backup(target.path);
  await running.client.appendToStream('kept-1', event('Later'));
  expect(() => restore(target.path, running.dataDir)).toThrow(/Another event node is running/);
  await running.stop();

  expect(restore(target.path, place.path)).toEqual({ events: 5 - 1 });
  expect(() => restore(target.path, place.path)).toThrow(/There is a log in .* already/);
  const restored = await startTestNode({ dataDir: place.path });
  const events = await collect(restored.client.readStream('kept-1'));
  expect(events.map((e) => e.event?.type)).toEqual(['A', 'B']);
  const begun = await restored.client.appendToStream('log-identity', event('LogCreated'), {
    expectedRevision: 'no_stream',
  });
  expect(begun.nextExpectedRevision).toBe(0n);
  expect((await restored.node.verify()).faults).toEqual([]);
  await restored.stop();
  target.remove();
  place.remove();
});

test('each role has a credential of its own and writes its own streams only', async () => {
  const running = await startTestNode({ insecure: false });
  const { dataDir, client } = running;
  const credentials = Object.fromEntries(
    ROLES.map((role) => {
      const [username = '', password = ''] = readFileSync(join(dataDir, `credential-${role}`), 'utf8')
        .trim()
        .split(':');
      return [role, { username, password }];
    }),
  ) as Record<(typeof ROLES)[number], { username: string; password: string }>;
  const may = async (role: (typeof ROLES)[number], stream: string) =>
    client.appendToStream(stream, event(), { credentials: credentials[role] }).then(
      () => true,
      (error: unknown) => {
        expect(error).toMatchObject({ type: 'access-denied' });
        return false;
      },
    );
  for (const stream of [
    'worker-a',
    'history-a~m',
    'catalog-a',
    'operator-a',
    'pull-a',
    'readings-a',
    '$$readings-a',
  ]) {
    expect([stream, await may('agent', stream)]).toEqual([stream, true]);
    expect([stream, await may('projector', stream)]).toEqual([stream, false]);
  }
  for (const stream of ['calls-m', 'key-1', 'settings-fleet', 'fleet-apis', '$$key-1']) {
    expect([stream, await may('agent', stream)]).toEqual([stream, false]);
    expect([stream, await may('api', stream)]).toEqual([stream, true]);
  }
  expect(await may('api', '$settings')).toBe(false);
  await expect(client.deleteStream('worker-a', { credentials: credentials.agent })).rejects.toMatchObject({
    type: 'access-denied',
  });
  expect(
    (await collect(client.readAll({ fromPosition: START, credentials: credentials.projector }))).length,
  ).toBeGreaterThan(5);
  const asAgent = connect(readFileSync(join(dataDir, 'connection-agent'), 'utf8').trim());
  expect((await asAgent.appendToStream('worker-a', event())).success).toBe(true);
  await expect(asAgent.appendToStream('key-2', event())).rejects.toMatchObject({ type: 'access-denied' });
  await disposeWithin(asAgent);
  await running.stop();
});

test('$acl of a stream overrules the defaults, and closes a subscription whose reader it shuts out', async () => {
  const running = await startTestNode({ insecure: false });
  const { client, dataDir } = running;
  const agent = connect(readFileSync(join(dataDir, 'connection-agent'), 'utf8').trim());
  await client.appendToStream('secret-1', event());
  await expect(agent.appendToStream('secret-1', event())).rejects.toMatchObject({ type: 'access-denied' });
  await client.setStreamMetadata('secret-1', { acl: { writeRoles: ['agent'] } });
  expect((await agent.appendToStream('secret-1', event())).success).toBe(true);
  const subscription = agent.subscribeToStream('secret-1');
  const ended = new Promise<unknown>((resolve) => subscription.on('error', resolve));
  await new Promise<void>((resolve) => subscription.on('caughtUp', resolve));
  await client.setStreamMetadata('secret-1', { acl: { readRoles: ['$admins'] } });
  expect(await ended).toMatchObject({ type: 'access-denied' });
  await expect(collect(agent.readStream('secret-1'))).rejects.toMatchObject({ type: 'access-denied' });
  await disposeWithin(agent);
  await running.stop();
});

test('each right of $acl is given to the role it names, as one or in a list, and to nobody else but administrators', async () => {
  const running = await startTestNode({ insecure: false });
  const { client, dataDir } = running;
  const [agent, projector] = (['agent', 'projector'] as const).map((role) => {
    const [username = '', password = ''] = readFileSync(join(dataDir, `credential-${role}`), 'utf8')
      .trim()
      .split(':');
    return { username, password };
  });
  const may = (work: Promise<unknown>) =>
    work.then(
      () => true,
      (error: unknown) => {
        expect(error).toMatchObject({ type: 'access-denied' });
        return false;
      },
    );
  type Who = { readonly credentials?: { username: string; password: string } };
  const rights: Record<string, (stream: string, who: Who) => Promise<unknown>> = {
    $r: (stream, who) => collect(client.readStream(stream, who)),
    $w: (stream, who) => client.appendToStream(stream, event(), who),
    $d: (stream, who) => client.deleteStream(stream, who),
    $mr: (stream, who) => client.getStreamMetadata(stream, who),
    $mw: (stream, who) => client.setStreamMetadata(stream, { maxCount: 9 }, who),
  };
  for (const [right, use] of Object.entries(rights)) {
    for (const roles of ['agent', ['other', 'agent']]) {
      const stream = `granted-${right.slice(1)}-${roles.length}`;
      await client.appendToStream(stream, event());
      // Nobody has any right but the one in question.
      const acl = { $r: [], $w: [], $d: [], $mr: [], $mw: [], [right]: roles };
      await client.appendToStream(`$$${stream}`, event('$metadata', { $acl: acl }));
      for (const [other, useOther] of Object.entries(rights)) {
        const granted = other === right;
        if (!granted)
          expect([right, other, await may(useOther(stream, { credentials: agent! }))]).toEqual([
            right,
            other,
            false,
          ]);
      }
      expect([right, await may(use(stream, { credentials: projector! }))]).toEqual([right, false]);
      expect([right, await may(use(stream, { credentials: agent! }))]).toEqual([right, true]);
      // Its own use may have changed the metadata or deleted the stream; the administrator may all the same.
      if (right !== '$d') expect([right, await may(use(stream, {}))]).toEqual([right, true]);
    }
  }
  await client.setStreamMetadata('open-1', { acl: { writeRoles: ['$all'] } });
  expect(await may(client.appendToStream('open-1', event(), { credentials: projector! }))).toBe(true);
  await running.stop();
});

test('of a node without passwords $acl shuts nobody out', async () => {
  const running = await startTestNode();
  const { client } = running;
  const nobody: string[] = [];
  const acl = { $r: nobody, $w: nobody, $d: nobody, $mr: nobody, $mw: nobody };
  await client.appendToStream('open-1', event());
  await client.appendToStream('$$open-1', event('$metadata', { $acl: acl }));
  expect(await collect(client.readStream('open-1'))).toHaveLength(1);
  expect((await client.appendToStream('open-1', event())).success).toBe(true);
  await client.deleteStream('open-1');
  await running.stop();
});
