import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  chmodSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BerthEvent } from '#domain/events/index.js';
import { BackOff } from './back-off.js';
import type { NewEvent } from './event-log.js';
import { type Loss, openSpool, type Spool, type SpoolOptions } from './spool.js';
import { MemoryLog } from './testing/memory-log.js';
import { SAMPLES } from './testing/samples.js';
import { until } from './testing/until.js';

let dir: string;
let log: MemoryLog;
let open: Spool[];
let warnings: string[];
let losses: Loss[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'berth-spool-'));
  log = new MemoryLog();
  open = [];
  warnings = [];
  losses = [];
});
afterEach(async () => {
  await Promise.all(open.map((spool) => spool.close()));
  rmSync(dir, { recursive: true, force: true });
});

const spool = (options: Partial<SpoolOptions> = {}): Spool => {
  const opened = openSpool({
    dir,
    log,
    now: () => 0,
    warn: (m) => warnings.push(m),
    onLost: (loss) => losses.push(loss),
    backOff: new BackOff({ firstMs: 5, mostMs: 20 }),
    ...options,
  });
  open.push(opened);
  return opened;
};
const call = (n: number): NewEvent => ({
  id: randomUUID(),
  event: { type: 'CallStarted', data: { ...SAMPLES.CallStarted, promptBytes: n } },
  cause: { correlationId: 'c', causationId: 'c' },
});
const away = () => ({ failure: { kind: 'unavailable', message: 'away' } as const, written: false });
const files = (): string[] => readdirSync(dir).filter((f) => f.endsWith('.spool'));
const order = (stream: string): number[] =>
  log.stream(stream).map((e) => (e.event as Extract<BerthEvent, { type: 'CallStarted' }>).data.promptBytes);
/** What a process leaves behind that is killed: its files, nobody to write to them. */
const crash = async (crashed: Spool): Promise<void> => {
  open = open.filter((s) => s !== crashed);
  // While the log is away: what is closed must not append any more once it is back.
  await crashed.close();
};

describe('the spool', () => {
  it('appends what was recorded, in order in each stream and under its ids, and empties its files', async () => {
    const s = spool();
    const events = Array.from({ length: 300 }, (_, n) => call(n));
    for (const [n, event] of events.entries()) s.record(n % 3 === 0 ? 'calls-a' : 'calls-b', event);
    expect(await s.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual(events.flatMap((_, n) => (n % 3 === 0 ? [n] : [])));
    expect(order('calls-b')).toEqual(events.flatMap((_, n) => (n % 3 === 0 ? [] : [n])));
    expect(new Set(log.all.map((e) => e.id))).toEqual(new Set(events.map((e) => e.id)));
    expect(s.waitingBytes).toBe(0);
    expect(s.waitingEvents).toBe(0);
    await s.close();
    expect(files()).toEqual([]);
  });

  it('keeps events while the log is away and appends them when it is back', async () => {
    log.fault = away;
    const s = spool();
    for (let n = 0; n < 50; n++) s.record('calls-a', call(n));
    expect(await s.drain(100)).toBe(false);
    expect(s.waitingEvents).toBe(50);
    expect(log.all).toEqual([]);
    await until(() => warnings.join().includes('they wait in the spool'));
    log.fault = undefined;
    expect(await s.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual(Array.from({ length: 50 }, (_, n) => n));
    await until(() => warnings.join().includes('takes call events again'));
  });

  it('writes nothing twice when an answer was lost on its way', async () => {
    let lost = 3;
    log.fault = () =>
      lost-- > 0 ? { failure: { kind: 'unavailable', message: 'no answer' }, written: true } : undefined;
    const s = spool();
    for (let n = 0; n < 20; n++) s.record('calls-a', call(n));
    expect(await s.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it('has what was recorded on disk soon after, and a later process appends it', async () => {
    log.fault = away;
    const first = spool();
    for (let n = 0; n < 10; n++) first.record('calls-a', call(n));
    await until(() => files().some((f) => readFileSync(join(dir, f), 'utf8').split('B1 ').length === 11));
    await crash(first);
    log.fault = undefined;
    const second = spool();
    expect(await second.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual(Array.from({ length: 10 }, (_, n) => n));
    await second.close();
    expect(files()).toEqual([]);
  });

  it('appends an earlier life before what is new, and survives a batch that was half known', async () => {
    log.fault = away;
    const first = spool();
    const events = Array.from({ length: 6 }, (_, n) => call(n));
    for (const event of events) first.record('calls-a', event);
    await first.drain(50);
    await crash(first);
    log.fault = undefined;
    await log.append('calls-a', events.slice(0, 3), 'any');
    const append = log.append.bind(log);
    // A real server refuses as a whole what it knows in part.
    log.append = (stream, list, expected) =>
      list.length > 1 && list.some((e) => log.all.some((r) => r.id === e.id))
        ? Promise.resolve({ ok: false, error: { kind: 'conflict', actual: 2 } })
        : append(stream, list, expected);
    const second = spool();
    second.record('calls-a', call(6));
    expect(await second.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('sets a torn tail aside with a message and appends the rest', async () => {
    log.fault = away;
    const first = spool();
    for (let n = 0; n < 5; n++) first.record('calls-a', call(n));
    await first.drain(50);
    await first.close();
    const [name = ''] = files();
    const path = join(dir, name);
    truncateSync(path, readFileSync(path).length - 10);
    log.fault = undefined;
    expect(await spool().drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual([0, 1, 2, 3]);
    expect(warnings.join()).toMatch(/bytes of the spool file .* are damaged/);
    expect(readdirSync(dir).some((f) => f.endsWith('.damaged'))).toBe(true);
  });

  it('passes over a file of nonsense', async () => {
    writeFileSync(join(dir, '999999-00000001.spool'), 'nonsense\n'.repeat(100));
    const s = spool();
    s.record('calls-a', call(1));
    expect(await s.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual([1]);
    expect(s.waitingBytes).toBe(0);
  });

  it('counts and says what does not fit, and goes on when there is room', async () => {
    log.fault = away;
    const s = spool({ maxBytes: 20_000 });
    for (let n = 0; n < 100; n++) s.record('calls-a', call(n));
    await until(() => losses.length > 0);
    expect(s.waitingBytes).toBeLessThanOrEqual(20_000);
    expect(s.lost).toBe(100 - s.waitingEvents);
    expect(losses.reduce((sum, l) => sum + l.events, 0)).toBe(s.lost);
    expect(losses[0]?.reason).toMatch(/The spool is full: .* of 19\.5 KiB|The spool is full: .* of 20 KiB/);
    log.fault = undefined;
    expect(await s.drain(5000)).toBe(true);
    const kept = order('calls-a').length;
    s.record('calls-a', call(100));
    expect(await s.drain(5000)).toBe(true);
    expect(order('calls-a')).toHaveLength(kept + 1);
  });

  it('holds 64 MiB when nothing else is said', async () => {
    log.fault = away;
    const s = spool();
    const data = { ...SAMPLES.CallStarted, endpoint: 'x'.repeat(1_000_000) };
    for (let n = 0; n < 70; n++) s.record('calls-a', { ...call(n), event: { type: 'CallStarted', data } });
    await until(() => s.lost > 0);
    // 67 times a little over 1,000,000 bytes fit into 67,108,864.
    expect([s.waitingEvents, s.lost]).toEqual([67, 3]);
    expect(losses[0]?.reason).toMatch(/^The spool is full: .* of 64(\.0)? MiB/);
  });

  it('keeps both halves of a pair or loses both, and says all of what it lost', async () => {
    log.fault = away;
    const s = spool({ maxBytes: 30_000 });
    const pairs = 60;
    const half = (n: number, which: 'first' | 'last') =>
      s.record(`calls-${n}`, call(n), { pair: String(n), half: which });
    // Six at a time are under way: each begins well before it ends, and what comes between takes room.
    for (let n = 0; n < pairs + 6; n++) {
      if (n < pairs) half(n, 'first');
      s.record('calls-between', call(n));
      if (n >= 6) half(n - 6, 'last');
      await s.drain(1);
    }
    const halves = Array.from({ length: pairs }, (_, n) => n);
    await until(() => losses.reduce((sum, l) => sum + l.events, 0) === s.lost);
    log.fault = undefined;
    expect(await s.drain(5000)).toBe(true);
    const kept = halves.filter((n) => log.stream(`calls-${n}`).length === 2);
    const lost = halves.filter((n) => log.stream(`calls-${n}`).length === 0);
    expect(kept.length + lost.length).toBe(pairs);
    expect(kept.length).toBeGreaterThan(3);
    expect(lost.length).toBeGreaterThan(3);
    expect(s.lost).toBe(3 * pairs + 6 - log.all.length);
    // With room again a pair is whole again.
    half(pairs, 'first');
    half(pairs, 'last');
    expect(await s.drain(5000)).toBe(true);
    expect(log.stream(`calls-${pairs}`)).toHaveLength(2);
  });

  it('does not end what could not begin: a last half whose first was no event is lost too', async () => {
    const s = spool();
    const odd = { ...SAMPLES.CallStarted, promptBytes: 1n as unknown as number };
    s.record(
      'calls-a',
      { ...call(0), event: { type: 'CallStarted', data: odd } },
      { pair: 'p', half: 'first' },
    );
    s.record('calls-a', call(1), { pair: 'p', half: 'last' });
    await until(() => s.lost === 2);
    expect(await s.drain(1000)).toBe(true);
    expect(log.all).toEqual([]);
  });

  it('rolls over files while the log is away and takes them in order', async () => {
    log.fault = away;
    const s = spool({ maxBytes: 300_000 });
    for (let n = 0; n < 400; n++) {
      s.record('calls-a', call(n));
      if (n % 50 === 49) await s.drain(10);
    }
    expect(files().length).toBeGreaterThan(2);
    log.fault = undefined;
    expect(await s.drain(5000)).toBe(true);
    expect(s.lost).toBe(0);
    expect(order('calls-a')).toEqual(Array.from({ length: 400 }, (_, n) => n));
    expect(files().length).toBeLessThanOrEqual(1);
  });

  it('sets aside what the log refuses, and what comes after it goes on', async () => {
    log.fault = (stream) =>
      stream === 'calls-dead'
        ? { failure: { kind: 'refused', message: 'The stream was deleted for good.' }, written: false }
        : undefined;
    const s = spool();
    s.record('calls-dead', call(0));
    s.record('calls-a', call(1));
    expect(await s.drain(5000)).toBe(true);
    await until(() => losses.length > 0);
    expect(order('calls-a')).toEqual([1]);
    expect(s.lost).toBe(1);
    expect(losses[0]?.reason).toContain('deleted for good');
    expect(readdirSync(dir).some((f) => f.startsWith('refused-'))).toBe(true);
  });

  it('does not throw on an event that cannot be serialised or is too large', async () => {
    const s = spool();
    const odd = { ...SAMPLES.CallStarted, promptBytes: 1n as unknown as number };
    s.record('calls-a', { ...call(0), event: { type: 'CallStarted', data: odd } });
    s.record('calls-a', {
      ...call(0),
      event: { type: 'CallStarted', data: { ...SAMPLES.CallStarted, endpoint: 'x'.repeat(1_100_000) } },
    });
    await until(() => losses.length > 0);
    expect(s.lost).toBe(2);
    expect(await s.drain(1000)).toBe(true);
  });

  it('goes on from memory when its folder is gone', async () => {
    const s = spool();
    rmSync(dir, { recursive: true, force: true });
    s.record('calls-a', call(1));
    expect(await s.drain(5000)).toBe(true);
    expect(order('calls-a')).toEqual([1]);
    expect(warnings.join()).toContain('The spool cannot write');
    expect(s.writeFailure).toContain('ENOENT');
  });

  it('leaves alone the files of another process that lives', async () => {
    const name = `${process.ppid}-00000001.spool`;
    writeFileSync(join(dir, name), 'its own');
    chmodSync(join(dir, name), 0o600);
    const s = spool();
    expect(await s.drain(1000)).toBe(true);
    expect(readFileSync(join(dir, name), 'utf8')).toBe('its own');
  });
});
