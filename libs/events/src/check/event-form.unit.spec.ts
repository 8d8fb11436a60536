import { describe, expect, it } from 'vitest';
import type { BerthEvent, BerthEventType, EventMetadata, Recorded } from '#domain/events/index.js';
import { CATEGORIES } from '../catalogue.js';
import { SAMPLES } from '../testing/samples.js';
import { whatIsWrong } from './event-form.js';

const ID = '01979d3e-0000-7000-8000-000000000001';
const metadata: EventMetadata = {
  $correlationId: ID,
  $causationId: ID,
  at: '2026-01-02T03:04:05.678Z',
  by: 'cli',
  schemaVersion: 1,
};
const of = (
  type: BerthEventType,
  changes: object = {},
  over: Partial<Recorded<BerthEvent>> = {},
): readonly string[] => {
  // The samples name actions, pulls and other apis in short.
  const named = JSON.parse(
    JSON.stringify(SAMPLES[type]).replace(/"(\w+Id|foundBy)":"(?:a1|p1|other)"/g, `"$1":"${ID}"`),
  ) as object;
  const event = { type, data: { ...named, ...changes } } as unknown as BerthEvent;
  const position = { commit: 1n, prepare: 1n };
  const recorded = { event, id: ID, stream: '', revision: 0, position, metadata, ...over };
  const streams = over.stream === undefined ? CATEGORIES.map((name) => `${name}-x`) : [over.stream];
  const found = streams.map((stream) => [...whatIsWrong({ ...recorded, stream })]);
  return found.sort((one, other) => one.length - other.length)[0] ?? [];
};

/** The categories in whose streams an event of this type may stand. */
const homesOf = (type: BerthEventType): readonly string[] =>
  CATEGORIES.filter(
    (name) => !of(type, {}, { stream: `${name}-x` }).some((wrong) => wrong.includes(' belongs into ')),
  );

describe('the rules for every event', () => {
  it.each(Object.keys(SAMPLES) as BerthEventType[])('hold for %s', (type) => {
    expect(of(type)).toEqual([]);
  });

  it.each(Object.keys(SAMPLES) as BerthEventType[])('have one category for %s', (type) => {
    expect(homesOf(type)).toHaveLength(1);
  });

  it.each([
    ['PlacementDecided', 'worker'],
    ['ForeignUseChanged', 'worker'],
    ['CallFinished', 'calls'],
    ['LoadMeasured', 'history'],
    ['WeightsHashed', 'catalog'],
    ['SettingsChanged', 'settings'],
    ['KeyRevoked', 'key'],
    ['OperatorActionFinished', 'operator'],
    ['FilePulled', 'pull'],
    ['DevicesRead', 'readings'],
    ['ApiLost', 'fleet'],
    ['WhatIfSummarised', 'fleet'],
    ['LogCreated', 'log'],
  ] as const)('let %s stand in a stream of %s alone', (type, category) => {
    expect(homesOf(type)).toEqual([category]);
  });

  it.each([
    ['bytes that are no whole number', 'CapacityMeasured', { ramBytes: 1.5 }, /whole number/],
    ['bytes at 2^53', 'CapacityMeasured', { ramBytes: 2 ** 53 }, /whole number from 0 to below 2\^53/],
    [
      'bytes as text',
      'ResidentEvicted',
      { freed: [{ deviceId: 'ram', bytes: -1 }] },
      /freed\[0\]\.bytes is -1/,
    ],
    ['a time without milliseconds', 'WorkerLost', { lastSeenAt: '2026-01-02T03:04:05Z' }, /no UTC time/],
    ['a time of another zone', 'WorkerLost', { lastSeenAt: '2026-01-02T03:04:05.678+01:00' }, /no UTC time/],
    ['an id of another kind', 'ApiStopped', { apiId: '6f1c1f0e-0000-4000-8000-000000000000' }, /no UUIDv7/],
    ['what is unknown as null', 'WorkerRegistered', { dataAddress: null }, /left out/],
    ['a name in another case', 'ApiStopped', { Api_id: 'x' }, /no camelCase name/],
    ['a number without a unit', 'PullFinished', { size: 3 }, /without a unit in its name/],
    ['a time that never was', 'ResidentEvicted', { seconds: Number.NaN }, /no measure/],
    ['a tail that is too long', 'LoadFailed', { logTail: 'x'.repeat(4097) }, /4097 bytes; it may have 4096/],
    ['a working that is too long', 'PlacementRefused', { reason: 'x'.repeat(65_536) }, /may have 65536/],
    [
      'too many processes',
      'ForeignUseChanged',
      { processes: Array.from({ length: 9 }, () => ({ pid: 1, name: 'x', bytes: 1 })) },
      /names 9 processes/,
    ],
    ['a key', 'PullRefused', { reason: `bk_abc_${'k'.repeat(30)} is wrong` }, /holds a key/],
  ] as const)('find %s', (_, type, changes, message) => {
    expect(of(type, changes)).toEqual([expect.stringMatching(message)]);
  });

  it('let a limit be taken away, and settings hold what they hold', () => {
    expect(of('LimitSet', { value: null })).toEqual([]);
    expect(of('SettingsChanged', { patch: { goal: null, 'any-name': 0.5 } })).toEqual([]);
  });

  it.each([
    ['an id that is no UUID', { id: 'first' }, /is no UUID/],
    ['a writer that is nobody', { metadata: { ...metadata, by: '' } }, /written by ""/],
    ['a time of writing that is none', { metadata: { ...metadata, at: 'today' } }, /written at "today"/],
    ['no correlation', { metadata: { ...metadata, $correlationId: '' } }, /belongs to/],
    ['no version', { metadata: { ...metadata, schemaVersion: 0 } }, /schema version 0/],
    [
      'a stream of another category',
      { stream: 'calls-x' },
      /stands in calls-x, and belongs into a stream of worker/,
    ],
  ] as const)('find %s', (_, over, message) => {
    expect(of('WorkerLost', {}, over)).toEqual([expect.stringMatching(message)]);
  });
});
