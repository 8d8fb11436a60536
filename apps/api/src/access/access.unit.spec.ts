import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KeyEvent, SettingsEvent } from '#domain/events/other-events.js';
import { LogOf } from '#domain/testing/given.js';
import { Access } from './access.js';
import { Networks, plainAddress } from './addresses.js';
import { mintKey } from './api-key.js';
import { FoldedSettings } from '../fleet/settings.js';
import { DOOR_KNOBS, type Door, DoorSettings } from './door-settings.js';
import { Keyring } from './keyring.js';
import type { Visitor } from './visitor.js';
import { WrongKeys } from './wrong-keys.js';

const door = (over: Partial<Record<'networks' | 'proxies' | 'origins', string[]>> = {}): Door => ({
  networks: new Networks(over.networks ?? []),
  proxies: new Networks(over.proxies ?? []),
  origins: new Set(over.origins ?? []),
  interimAnswers: true,
});

function accessOf(of: Door = door(), ...events: KeyEvent[]) {
  const keys = new Keyring();
  const logs = new Map<string, LogOf<KeyEvent>>();
  const write = (event: KeyEvent) => {
    const { keyId } = event.data;
    const log = logs.get(keyId) ?? new LogOf<KeyEvent>(`key-${keyId}`);
    logs.set(keyId, log);
    log.add(event);
    for (const recorded of log.recorded) keys.fold(keyId, recorded);
  };
  events.forEach(write);
  return { access: new Access({ door: { now: of }, keys, now: () => 1000 }), write };
}

const local: Visitor = { peer: '127.0.0.1', headers: { host: 'localhost:8080' } };
const from = (peer: string, headers: Record<string, string> = {}, method = 'GET'): Visitor => ({
  peer,
  method,
  headers: { host: '192.168.1.5:8080', ...headers },
});
const codeOf = (entry: ReturnType<Access['calls']>): string =>
  entry.ok ? entry.value.rights : entry.error.error.code;

const issue = (minted: ReturnType<typeof mintKey>, over: object = {}): KeyEvent => ({
  type: 'KeyIssued',
  data: { keyId: minted.keyId, name: 'laptop', scope: 'use', sha256: minted.sha256, ...over },
});

describe('without a key', () => {
  it.each([
    ['a loopback peer', local],
    ['IPv6', { peer: '::1', headers: { host: '[::1]:8080' } }],
    ['a mapped address', { peer: '::ffff:127.0.0.1', headers: { host: '127.0.0.1' } }],
    ['a local page', { ...local, headers: { ...local.headers, origin: 'http://localhost:5173' } }],
    [
      'a word that a client must send',
      { ...local, headers: { ...local.headers, authorization: 'Bearer none' } },
    ],
  ])('%s comes in, and manages', (_, visitor) => {
    const { access } = accessOf();
    expect(codeOf(access.calls(visitor))).toBe('admin');
    expect(codeOf(access.management(visitor))).toBe('admin');
  });

  it.each([
    ['another machine', from('192.168.1.7')],
    ['no address', { ...local, peer: undefined }],
    ['a rebound name', { ...local, headers: { host: 'evil.example' } }],
    ['no Host', { ...local, headers: {} }],
    ['a name that begins as ours', { ...local, headers: { host: 'localhost.evil.example' } }],
    ['a foreign page', { ...local, headers: { ...local.headers, origin: 'https://evil.example' } }],
    ['a sandboxed page', { ...local, headers: { ...local.headers, origin: 'null' } }],
    ['a proxy', { ...local, headers: { ...local.headers, 'x-forwarded-for': '127.0.0.1' } }],
    ['a standard proxy', { ...local, headers: { ...local.headers, forwarded: 'for=1.2.3.4' } }],
    ['a proxy that says little', { ...local, headers: { ...local.headers, 'x-forwarded-proto': 'https' } }],
  ])('%s is told that one is needed', (_, visitor) => {
    const { access } = accessOf();
    expect(codeOf(access.calls(visitor))).toBe('invalid_api_key');
    expect(codeOf(access.management(visitor))).toBe('invalid_api_key');
  });

  it('a trusted network calls models, without an admin’s options, and does not manage', () => {
    const { access } = accessOf(door({ networks: ['private'] }));
    for (const peer of ['192.168.1.7', '10.1.2.3', '::ffff:172.31.0.1', 'fd00::7', 'fe80::1%eth0']) {
      expect([peer, codeOf(access.calls(from(peer)))]).toEqual([peer, 'use']);
      expect([peer, codeOf(access.management(from(peer)))]).toEqual([peer, 'invalid_api_key']);
    }
    expect(codeOf(access.calls(from('172.32.0.1')))).toBe('invalid_api_key');
    expect(codeOf(access.calls(from('192.168.1.7', { host: 'berth.local:8080' })))).toBe('use');
    expect(codeOf(access.calls(from('192.168.1.7', { host: 'rebound.example' })))).toBe('invalid_api_key');
    expect(codeOf(access.calls(from('192.168.1.7', { origin: 'https://evil.example' })))).toBe(
      'invalid_api_key',
    );
  });

  it('the right-most address that is no listed proxy counts, and only from a listed proxy', () => {
    const { access } = accessOf(door({ networks: ['192.168.0.0/16'], proxies: ['127.0.0.1', '10.0.0.2'] }));
    const by = (peer: string, header: Record<string, string>) => codeOf(access.calls(from(peer, header)));
    expect(by('127.0.0.1', { 'x-forwarded-for': '192.168.1.7' })).toBe('use');
    expect(by('127.0.0.1', { 'x-forwarded-for': '192.168.1.7, 8.8.8.8' })).toBe('invalid_api_key');
    expect(by('127.0.0.1', { 'x-forwarded-for': '8.8.8.8, 192.168.1.7:555, 10.0.0.2' })).toBe('use');
    expect(by('127.0.0.1', { forwarded: 'for=8.8.8.8, for="192.168.1.7:4711";proto=https' })).toBe('use');
    expect(by('127.0.0.1', { 'x-forwarded-for': '' })).toBe('invalid_api_key');
    expect(by('10.9.9.9', { 'x-forwarded-for': '192.168.1.7' })).toBe('invalid_api_key');
    // A proxy never makes a client local: it would manage without a key.
    expect(codeOf(access.management(from('127.0.0.1', { 'x-forwarded-for': '127.0.0.1' })))).toBe(
      'invalid_api_key',
    );
  });

  it('a page of an origin in the settings may call, and never manages; "*" lets none in without a key', () => {
    const page = { ...local, headers: { ...local.headers, origin: 'https://chat.example' } };
    const listed = accessOf(door({ origins: ['https://chat.example'] })).access;
    expect(codeOf(listed.calls(page))).toBe('admin');
    expect(codeOf(listed.management(page))).toBe('invalid_api_key');
    expect(listed.allowedOrigin(page)).toBe('https://chat.example');
    const any = accessOf(door({ origins: ['*'] })).access;
    expect(codeOf(any.calls(page))).toBe('invalid_api_key');
    expect(any.allowedOrigin(page)).toBe('*');
    expect(accessOf().access.allowedOrigin(page)).toBeUndefined();
  });
});

describe('a key', () => {
  const minted = mintKey();
  const bearer = { authorization: `Bearer ${minted.text}` };

  it('opens from anywhere, however it is sent, and says who calls', () => {
    const { access } = accessOf(door(), issue(minted));
    for (const headers of [bearer, { 'x-api-key': minted.text }, { 'api-key': minted.text }]) {
      expect(access.calls(from('8.8.8.8', headers))).toEqual({
        ok: true,
        value: { keyId: minted.keyId, rights: 'use' },
      });
    }
    expect(codeOf(access.management(from('8.8.8.8', bearer)))).toBe('forbidden');
  });

  it('of scope admin manages, unless a page of elsewhere would change something', () => {
    const { access } = accessOf(door(), issue(minted, { scope: 'admin' }));
    expect(codeOf(access.management(from('8.8.8.8', bearer, 'POST')))).toBe('admin');
    const page = { ...bearer, origin: 'https://evil.example' };
    expect(codeOf(access.management(from('8.8.8.8', page, 'GET')))).toBe('admin');
    expect(codeOf(access.management(from('8.8.8.8', page, 'DELETE')))).toBe('forbidden');
    const own = { ...bearer, origin: 'http://192.168.1.5:8080' };
    expect(codeOf(access.management(from('8.8.8.8', own, 'DELETE')))).toBe('admin');
  });

  it('stops at its revocation and at its end, also where none is needed', () => {
    const { access, write } = accessOf(door(), issue(minted));
    const here = { ...local, headers: { ...local.headers, ...bearer } };
    expect(codeOf(access.calls(here))).toBe('use');
    write({ type: 'KeyRevoked', data: { keyId: minted.keyId, by: 'cli' } });
    expect(codeOf(access.calls(here))).toBe('invalid_api_key');
    const expired = accessOf(door(), issue(minted, { expiresAt: '1970-01-01T00:00:01.000Z' })).access;
    expect(codeOf(expired.calls(here))).toBe('invalid_api_key');
  });

  it('with any other character opens nothing, and no refusal repeats it', () => {
    const { access } = accessOf(door(), issue(minted));
    fc.assert(
      fc.property(
        fc.nat({ max: minted.text.length - 1 }),
        fc.constantFrom('a', 'B', '0', '_', '-', ' '),
        (at, char) => {
          fc.pre(minted.text[at] !== char);
          const text = `${minted.text.slice(0, at)}${char}${minted.text.slice(at + 1)}`;
          const entry = access.calls(from('8.8.8.8', { authorization: `Bearer ${text}` }));
          expect(entry.ok).toBe(false);
          expect(JSON.stringify(entry)).not.toContain(text.slice(16));
        },
      ),
    );
  });

  it('has 256 bits that differ each time, behind an id', () => {
    const keys = Array.from({ length: 50 }, mintKey);
    expect(new Set(keys.map(({ sha256 }) => sha256)).size).toBe(50);
    for (const { text, keyId } of keys) {
      expect(text.startsWith(`bk_${keyId}_`)).toBe(true);
      expect(Buffer.from(text.slice(16), 'base64url')).toHaveLength(32);
    }
  });
});

describe('wrong keys', () => {
  it('are answered later and later, one after another, by address', () => {
    let now = 0;
    const wrong = new WrongKeys(() => now);
    const delays = Array.from({ length: 6 }, () => wrong.delayMs('8.8.8.8'));
    expect(delays).toEqual([0, 0, 0, 250, 750, 1750]);
    expect(wrong.delayMs('9.9.9.9')).toBe(0);
    for (let tries = 0; tries < 100; tries += 1) expect(wrong.delayMs('8.8.8.8')).toBeLessThanOrEqual(8000);
    now = 1_000_000;
    expect(wrong.delayMs('8.8.8.8')).toBe(0);
  });
});

describe('the settings of the door', () => {
  it.each([
    ['trustedNetworks', ['private', '10.0.0.0/8', 'fd00::1'], true],
    ['trustedNetworks', ['10.0.0.0/33'], false],
    ['trustedProxies', ['proxy.example'], false],
    ['corsOrigins', ['https://chat.example', 'http://localhost:3000', '*'], true],
    ['corsOrigins', ['https://chat.example/path'], false],
    ['corsOrigins', 'https://chat.example', false],
    ['interimAnswers', false, true],
    ['interimAnswers', 'off', false],
  ])('%s takes %j: %s', (name, value, takes) => {
    expect(DOOR_KNOBS[name]?.check(value)).toBe(takes);
  });

  it('hold from the change of the setting on: interim answers go out until they are turned off', () => {
    const settings = new FoldedSettings();
    const access = new Access({ door: new DoorSettings(settings), keys: new Keyring(), now: () => 0 });
    expect(access.interimAnswers).toBe(true);
    const log = new LogOf<SettingsEvent>('settings-fleet');
    const change = (values: Record<string, unknown>) => {
      log.add({ type: 'SettingsChanged', data: { patch: values, by: 'test' } });
      for (const recorded of log.recorded) settings.fold('fleet', recorded);
    };
    change({ interimAnswers: false });
    expect(access.interimAnswers).toBe(false);
    change({ interimAnswers: null });
    expect(access.interimAnswers).toBe(true);
  });

  it('read one address from each way of writing it', () => {
    expect(['::ffff:10.0.0.1', 'fe80::1%eth0', '10.0.0.1'].map(plainAddress)).toEqual([
      '10.0.0.1',
      'fe80::1',
      '10.0.0.1',
    ]);
  });
});
