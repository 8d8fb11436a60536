import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { type EventStoreDBClient, START } from '@eventstore/db-client';
import { ensureCertificates } from './access/certificates.js';
import { startEventNode } from './node.js';
import {
  collect,
  connect,
  disposeWithin,
  event,
  startTestNode,
  temporaryFolder,
  type TestNode,
} from './testing/node-fixture.js';

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe('a node with TLS', () => {
  let running: TestNode;
  let client: EventStoreDBClient;
  beforeAll(async () => {
    running = await startTestNode({ insecure: false });
    client = running.client;
  });
  afterAll(() => running.stop());

  test('keeps keys and credential where only the owner can read', () => {
    const { dataDir } = running;
    expect(mode(join(dataDir, 'tls'))).toBe('700');
    for (const file of [
      'credential',
      'connection',
      'tls/ca-key.pem',
      'tls/server-key.pem',
      'log.db',
      'log.db-wal',
    ]) {
      expect(mode(join(dataDir, file))).toBe('600');
    }
    expect(readFileSync(join(dataDir, 'credential'), 'utf8')).toMatch(/^admin:[0-9a-f]{64}\n$/);
    expect(running.node.publicAddress).not.toContain('@');
  });

  test('refuses a call without a password, and one with a wrong one, with the typed error', async () => {
    const bare = connect(running.node.publicAddress);
    await expect(collect(bare.readStream('s-1'))).rejects.toMatchObject({ type: 'access-denied' });
    await expect(bare.appendToStream('s-1', event())).rejects.toMatchObject({ type: 'access-denied' });
    await disposeWithin(bare);
    for (const credentials of [
      { username: 'admin', password: 'guess' },
      { username: 'nobody', password: '' },
    ]) {
      await expect(client.appendToStream('s-1', event(), { credentials })).rejects.toMatchObject({
        type: 'access-denied',
      });
      await expect(collect(client.readAll({ fromPosition: START, credentials }))).rejects.toMatchObject({
        type: 'access-denied',
      });
      await expect(client.deleteStream('s-1', { credentials })).rejects.toMatchObject({
        type: 'access-denied',
      });
    }
  });

  test('refuses a client that trusts another authority', async () => {
    const folder = temporaryFolder();
    const other = await ensureCertificates(folder.path, '127.0.0.1');
    const url = running.node.connectionString.replace(/tlsCAFile=.*/, `tlsCAFile=${other.caFile}`);
    const stranger = connect(url);
    await expect(stranger.appendToStream('s-1', event())).rejects.toMatchObject({ code: 14 });
    await disposeWithin(stranger);
    folder.remove();
  });

  test('lets the connection file in as it stands', async () => {
    const url = readFileSync(join(running.dataDir, 'connection'), 'utf8').trim();
    expect(url).toMatch(/^esdb:\/\/admin:[0-9a-f]{64}@127\.0\.0\.1:\d+\?tls=true&tlsCAFile=/);
    const other = connect(url);
    expect((await other.appendToStream('s-2', event())).success).toBe(true);
    await disposeWithin(other);
  });
});

test('a node without TLS is refused on any address but loopback', async () => {
  const folder = temporaryFolder();
  await expect(
    startEventNode({ port: 0, host: '0.0.0.0', insecure: true, dataDir: folder.path }),
  ).rejects.toThrow(/loopback/);
  folder.remove();
});

describe('certificates', () => {
  const day = 24 * 3600 * 1000;

  test('are kept over restarts and renewed before they expire', async () => {
    const folder = temporaryFolder();
    const first = await ensureCertificates(folder.path, '127.0.0.1');
    expect((await ensureCertificates(folder.path, '127.0.0.1')).cert).toBe(first.cert);
    const nearEnd = first.expiresAt.getTime() - 10 * day;
    const renewed = await ensureCertificates(folder.path, '127.0.0.1', () => nearEnd);
    expect(renewed.cert).not.toBe(first.cert);
    expect(renewed.ca).toBe(first.ca);
    expect(renewed.expiresAt.getTime()).toBeGreaterThan(first.expiresAt.getTime());
    expect(new X509Certificate(renewed.cert).verify(new X509Certificate(first.ca).publicKey)).toBe(true);
    folder.remove();
  });

  test('are made anew for another host, and carry loopback always', async () => {
    const folder = temporaryFolder();
    const first = await ensureCertificates(folder.path, '127.0.0.1');
    const second = await ensureCertificates(folder.path, 'log.example.org');
    expect(second.cert).not.toBe(first.cert);
    const cert = new X509Certificate(second.cert);
    expect(cert.checkHost('log.example.org')).toBeDefined();
    expect(cert.checkHost('localhost')).toBeDefined();
    expect(cert.checkIP('127.0.0.1')).toBeDefined();
    expect(cert.checkIP('::1')).toBeDefined();
    folder.remove();
  });

  test('that a full disk cut short are replaced', async () => {
    const folder = temporaryFolder();
    const first = await ensureCertificates(folder.path, '127.0.0.1');
    writeFileSync(join(folder.path, 'server.pem'), first.cert.slice(0, 100));
    const second = await ensureCertificates(folder.path, '127.0.0.1');
    expect(new X509Certificate(second.cert).checkIP('127.0.0.1')).toBeDefined();
    folder.remove();
  });
});
