import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BerthEvent, BerthEventType } from '#domain/events/index.js';
import { Decoder, encodeEvent, type RawRecorded, refusalOf } from './codec.js';
import { SAMPLES } from './testing/samples.js';
import { CURRENT_VERSIONS, upcast, type Versions } from './upcast.js';

const fixtures = join(import.meta.dirname, 'fixtures');
const types = Object.keys(CURRENT_VERSIONS) as BerthEventType[];

/** As JSON leaves it: without what is undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const raw = (over: Partial<RawRecorded> = {}): RawRecorded => ({
  id: '0b3c9c52-8f0e-4f2e-9a55-111111111111',
  streamId: 'worker-a',
  revision: 7n,
  type: 'WorkerLost',
  data: { lastSeenAt: '2026-01-01T00:00:00.000Z' },
  metadata: {
    $correlationId: 'corr',
    $causationId: 'cause',
    at: '2026-01-01T00:00:01.000Z',
    by: 'agent:a',
    schemaVersion: 1,
  },
  created: new Date(0),
  position: { commit: 5n, prepare: 5n },
  ...over,
});

const decoder = () => {
  const warnings: string[] = [];
  return { warnings, of: (versions?: Versions) => new Decoder((m) => warnings.push(m), versions) };
};

describe('the codec', () => {
  it('writes the cause, the writer, the time and the version of the type by construction', () => {
    const encoded = encodeEvent(
      {
        id: 'x',
        event: { type: 'PinSet', data: SAMPLES.PinSet },
        cause: { correlationId: 'call-1', causationId: 'event-0' },
      },
      { by: 'api:1', now: () => Date.UTC(2026, 4, 6, 7, 8, 9, 12) },
    );
    expect(JSON.parse(encoded.metadata.toString())).toEqual({
      $correlationId: 'call-1',
      $causationId: 'event-0',
      at: '2026-05-06T07:08:09.012Z',
      by: 'api:1',
      schemaVersion: 1,
    });
    expect(JSON.parse(encoded.data.toString())).toEqual(SAMPLES.PinSet);
  });

  it('gives back what was written', () => {
    const recorded = decoder().of().decode(raw());
    expect(recorded).toEqual({
      event: { type: 'WorkerLost', data: { lastSeenAt: '2026-01-01T00:00:00.000Z' } },
      id: raw().id,
      stream: 'worker-a',
      revision: 7,
      position: { commit: 5n, prepare: 5n },
      metadata: raw().metadata,
    });
  });

  it('skips a type that it does not know, and says so once', () => {
    const { of, warnings } = decoder();
    const d = of();
    expect(d.decode(raw({ type: 'SomethingNew' }))).toBeUndefined();
    expect(d.decode(raw({ type: 'SomethingNew', revision: 8n }))).toBeUndefined();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('SomethingNew');
    expect(warnings[0]).toContain('worker-a, revision 7');
  });

  it('skips system events without a word, and names of object members are no types', () => {
    const { of, warnings } = decoder();
    expect(of().decode(raw({ type: '$metadata' }))).toBeUndefined();
    expect(warnings).toEqual([]);
    expect(of().decode(raw({ type: 'constructor' }))).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });

  it('skips an event whose data is no JSON object', () => {
    const { of, warnings } = decoder();
    expect(of().decode(raw({ data: '{"cut off' }))).toBeUndefined();
    expect(of().decode(raw({ data: new Uint8Array(3) }))).toBeUndefined();
    expect(warnings[0]).toContain('no JSON object');
  });

  it('skips a version from the future and says that Berth must be upgraded', () => {
    const { of, warnings } = decoder();
    expect(of().decode(raw({ metadata: { schemaVersion: 2 } }))).toBeUndefined();
    expect(warnings[0]).toContain('version 2, written by a newer Berth');
  });

  it('reads an event that another tool wrote without metadata', () => {
    const recorded = decoder()
      .of()
      .decode(raw({ metadata: undefined }));
    expect(recorded?.metadata).toEqual({
      $correlationId: '',
      $causationId: '',
      at: '1970-01-01T00:00:00.000Z',
      by: 'unknown',
      schemaVersion: 1,
    });
  });

  it('refuses an event above 1 MiB with the figures, and events that are above it together', () => {
    const event = (bytes: number) =>
      encodeEvent(
        {
          id: 'x',
          event: {
            type: 'PullFailed',
            data: { pullId: 'p', reason: 'é'.repeat(bytes / 2) },
          },
          cause: { correlationId: 'c', causationId: 'c' },
        },
        { by: 'cli', now: () => 0 },
      );
    expect(refusalOf([event(900_000)])).toBeUndefined();
    expect(refusalOf([event(1_048_576)])).toMatch(
      /PullFailed x has 1\.0 MiB; an event may have at most 1\.0 MiB/,
    );
    expect(refusalOf([event(600_000), event(600_000)])).toMatch(/2 events have 1\.1 MiB together/);
    expect(refusalOf([])).toMatch(/at least one event/);
  });
});

describe('upcasting', () => {
  const versions: Versions = {
    current: { WorkerLost: 3 },
    steps: {
      WorkerLost: [
        ({ seen, ...rest }) => ({ ...rest, seenMs: seen }),
        ({ seenMs, ...rest }) => ({ ...rest, lastSeenAt: new Date(Number(seenMs)).toISOString() }),
      ],
    },
  };

  it('leads an old version through every step to the current one', () => {
    expect(upcast('WorkerLost', 1, { seen: 0, kept: 1 }, versions)).toEqual({
      ok: true,
      data: { lastSeenAt: '1970-01-01T00:00:00.000Z', kept: 1 },
    });
    expect(upcast('WorkerLost', 2, { seenMs: 1000 }, versions)).toEqual({
      ok: true,
      data: { lastSeenAt: '1970-01-01T00:00:01.000Z' },
    });
    expect(upcast('WorkerLost', 3, { lastSeenAt: 'x' }, versions)).toEqual({
      ok: true,
      data: { lastSeenAt: 'x' },
    });
  });

  it('is what the decoder reads old events with', () => {
    const recorded = decoder()
      .of(versions)
      .decode<BerthEvent>(raw({ data: { seen: 0 }, metadata: { schemaVersion: 1 } }));
    expect(recorded?.event).toEqual({
      type: 'WorkerLost',
      data: { lastSeenAt: '1970-01-01T00:00:00.000Z' },
    });
    expect(recorded?.metadata.schemaVersion).toBe(1);
  });

  it('says when a step is missing instead of handing out the old shape', () => {
    const { of, warnings } = decoder();
    expect(
      of({ current: { WorkerLost: 2 }, steps: {} }).decode(raw({ metadata: { schemaVersion: 1 } })),
    ).toBeUndefined();
    expect(warnings[0]).toContain('nothing reads version 1 any more');
  });
});

describe('the stored fixtures', () => {
  it.each(types)('%s of every version reads as today', (type) => {
    for (let version = 1; version <= CURRENT_VERSIONS[type]; version++) {
      const stored = JSON.parse(readFileSync(join(fixtures, `${type}.v${version}.json`), 'utf8')) as {
        type: string;
        data: Record<string, unknown>;
        metadata: { schemaVersion: number };
      };
      expect(stored.metadata.schemaVersion).toBe(version);
      const recorded = decoder()
        .of()
        .decode<BerthEvent>(raw({ type: stored.type, data: stored.data, metadata: stored.metadata }));
      expect(recorded?.event).toEqual(plain({ type, data: SAMPLES[type] }));
    }
  });

  it('belong to a type and a version that exist', () => {
    const names = types.flatMap((type) =>
      Array.from({ length: CURRENT_VERSIONS[type] }, (_, i) => `${type}.v${i + 1}.json`),
    );
    expect(readdirSync(fixtures).sort()).toEqual(names.sort());
  });
});
