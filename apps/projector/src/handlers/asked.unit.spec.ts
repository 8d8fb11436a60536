import { describe, expect, it } from 'vitest';
import type { BerthEvent } from '#domain/events/index.js';
import { SAMPLES } from '#events/testing/samples.js';
import { foldBatch } from '../rows/fold.js';
import { MemoryRows } from '../testing/memory-rows.js';
import { recorded } from '../testing/random-log.js';

/** Folds events of these streams one by one, a minute apart. */
async function fold(...events: readonly [stream: string, type: BerthEvent['type'], data?: object][]) {
  const rows = new MemoryRows();
  const drawn = events.map(([stream, type, data], n) => ({
    stream,
    id: `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
    event: { type, data: { ...SAMPLES[type], ...data } } as unknown as BerthEvent,
    at: new Date(n * 60_000).toISOString(),
  }));
  for (const one of recorded(drawn)) await foldBatch(rows, [one]);
  return rows;
}

describe('the views of what people asked', () => {
  it('keep each setting with its level and the event that set it, and say what was taken back', async () => {
    const rows = await fold(
      ['settings-fleet', 'SettingsChanged', { patch: { goal: 'a', slots: 2 } }],
      ['settings-w1~o/m', 'SettingsChanged', { patch: { slots: 4 } }],
      ['settings-fleet', 'SettingsChanged', { patch: { slots: null } }],
    );
    expect(
      rows
        .rows('settings')
        .map(({ scope, name, level, value, is_set }) => [scope, name, level, value, is_set]),
    ).toEqual([
      ['fleet', 'goal', 'fleet', 'a', true],
      ['fleet', 'slots', 'fleet', null, false],
      ['w1~o/m', 'slots', 'pair', 4, true],
    ]);
  });

  it('keep keys by their hash until they are revoked, once', async () => {
    const rows = await fold(
      ['key-k1', 'KeyIssued'],
      ['key-k1', 'KeyRevoked', { by: 'admin' }],
      ['key-k1', 'KeyRevoked', { by: 'somebody else' }],
    );
    expect(rows.rows('api_keys')).toMatchObject([
      { key_id: 'k1', sha256: 'ff00', revoked_by: 'admin', revoked_at: '1970-01-01T00:01:00.000Z' },
    ]);
  });

  it('follow an operator action from its request to its end', async () => {
    const rows = await fold(
      ['operator-w1', 'OperatorActionRequested'],
      ['operator-w1', 'OperatorActionStarted'],
      ['operator-w1', 'OperatorActionFinished'],
      ['operator-w1', 'OperatorActionFinished', { state: 'failed', result: 'late' }],
    );
    expect(rows.rows('operator_actions')).toMatchObject([
      {
        action_id: 'a1',
        worker_id: 'w1',
        state: 'done',
        result: 'loaded in 2.5 s',
        started_at: '1970-01-01T00:01:00.000Z',
        ended_at: '1970-01-01T00:02:00.000Z',
      },
    ]);
  });

  it('sum the files of a pull and end it once', async () => {
    const rows = await fold(
      ['pull-w1', 'PullRequested'],
      ['pull-w1', 'FilePulled', { file: 'a', bytes: 10 }],
      ['pull-w1', 'FilePulled', { file: 'b', bytes: 5 }],
      ['pull-w1', 'FilePulled', { file: 'a', bytes: 20 }],
      ['pull-w1', 'PullFailed', { reason: 'disk full' }],
      ['pull-w1', 'PullFinished'],
    );
    expect(rows.rows('pulls')).toMatchObject([
      { pull_id: 'p1', state: 'failed', reason: 'disk full', pulled_bytes: 25, worker_id: 'w1' },
    ]);
  });
});

describe('usage', () => {
  const calls = 'calls-owner/model';
  const started = (callId: string, keyId?: string) =>
    [calls, 'CallStarted', { callId, keyId, receivedAt: '2026-01-02T03:59:59.000Z' }] as const;
  const finished = (callId: string, more: object = {}) =>
    [
      calls,
      'CallFinished',
      {
        callId,
        stamps: {
          receivedAt: '2026-01-02T03:59:59.000Z',
          forwardedAt: '2026-01-02T04:00:00.500Z',
          finishedAt: '2026-01-02T04:00:09.000Z',
        },
        ...more,
      },
    ] as const;

  it('counts each ended call once, in the hour in which it came, by model and key', async () => {
    const rows = await fold(
      [...started('c1', 'k1')],
      [...finished('c1')],
      [...finished('c1', { outcome: 'failed' })],
      [...started('c2', 'k1')],
      [...finished('c2', { outcome: 'abandoned', tokens: {}, timings: {} })],
      [...started('c3', 'k1')],
    );
    expect(rows.rows('usage_hours')).toEqual([
      {
        hour: '2026-01-02T03:00:00.000Z',
        model_key: 'owner/model',
        key_id: 'k1',
        calls: 2,
        completed: 1,
        failed: 0,
        abandoned: 1,
        refused: 0,
        prompt_tokens: 10,
        cached_tokens: 2,
        output_tokens: 20,
        reasoning_tokens: 5,
        prompt_ms: 13,
        decode_ms: 200,
        waited_ms: 3000,
        bytes_out: 4096,
      },
    ]);
  });

  it('moves a call to the key that its start names, when the start comes after the end', async () => {
    const rows = await fold([...finished('c1')], [...started('c1', 'k1')]);
    const counted = rows
      .rows('usage_hours')
      .map(({ key_id, calls: n, output_tokens }) => [key_id, n, output_tokens]);
    expect(counted).toEqual([
      ['', 0, 0],
      ['k1', 1, 20],
    ]);
  });
});

describe('repetitions', () => {
  it('are told by the last 512 ids of their stream, and only by those', async () => {
    const rows = new MemoryRows();
    const pin = (n: number, pinned: boolean) => ({
      stream: 'worker-w1',
      id: `id-${n}`,
      event: { type: 'PinSet', data: { modelKey: 'm', pinned, by: 'x' } } as unknown as BerthEvent,
      at: new Date(n).toISOString(),
    });
    const many = Array.from({ length: 512 }, (_, n) => pin(n + 1, false));
    await foldBatch(rows, recorded([pin(0, true), ...many.slice(0, 511), pin(0, true)]));
    expect(rows.rows('workers')[0]?.pins).toEqual([]);
    expect(rows.rows('recent_events')[0]?.event_ids).toHaveLength(512);
    const other = new MemoryRows();
    await foldBatch(other, recorded([pin(0, true), ...many, pin(0, true)]));
    expect(other.rows('workers')[0]?.pins).toEqual(['m']);
  });
});
