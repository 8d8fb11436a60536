import { describe, expect, it } from 'vitest';
import {
  bytes,
  bytesOff,
  count,
  counted,
  deviceName,
  percent,
  perSecond,
  seconds,
  shortId,
} from './figures.js';
import { absolute, ago, between, span } from './times.js';

describe('figures', () => {
  it('carry their unit, and a dash where nothing is known', () => {
    expect(bytes(1.5 * 1024 ** 3)).toBe('1.50 GiB');
    expect(bytes(undefined)).toBe('–');
    expect(seconds(0.0421)).toBe('42 ms');
    expect(seconds(200)).toBe('3 min 20 s');
    expect(perSecond(24.04)).toBe('24.0 tok/s');
    expect(perSecond(Number.NaN)).toBe('–');
    expect(percent(0.034)).toBe('3.4 %');
    expect(percent(0)).toBe('0 %');
  });
  it('say which way a prediction was off', () => {
    expect(bytesOff(38_494_208)).toBe('+36.7 MiB');
    expect(bytesOff(-1024)).toBe('−1 KiB');
    expect(bytesOff(0)).toBe('±0');
  });
  it('group digits and take the singular for one', () => {
    expect(count(1_234_567)).toBe('1,234,567');
    expect(counted(1, 'call')).toBe('1 call');
    expect(counted(1200, 'entry', 'entries')).toBe('1,200 entries');
  });
  it('call the memory of the host RAM, a card by its name, and shorten ids at their front', () => {
    expect(deviceName('ram')).toBe('RAM');
    expect(deviceName('GPU-1', 'RTX 4090')).toBe('RTX 4090');
    expect(shortId('01a22cc3-4adb-7308-893a-1f1d6de6d8e7')).toBe('…6de6d8e7');
  });
});

describe('times', () => {
  const at = (seconds: number) => new Date(seconds * 1000).toISOString();
  it('are told from now, in one unit', () => {
    expect(ago(at(100), 101_000)).toBe('just now');
    expect(ago(at(100), 142_900)).toBe('42 s ago');
    expect(ago(at(0), 3_600_000 * 5)).toBe('5 h ago');
    expect(ago(at(140), 100_000)).toBe('in 40 s');
    expect(ago(undefined, 0)).toBe('–');
    expect(ago('no time', 0)).toBe('–');
    expect([span(59.9), span(119), span(86_400 * 3)]).toEqual(['59 s', '1 min', '3 d']);
  });
  it('are absolute with their offset where somebody asks', () => {
    expect(absolute(at(0))).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC([+−]\d\d:\d\d)?$/);
    expect(absolute('no time')).toBe('no time');
  });
  it('have a span only when both ends are known', () => {
    expect(between(at(1), at(3.5))).toBe(2.5);
    expect(between(at(1), undefined)).toBeUndefined();
  });
});
