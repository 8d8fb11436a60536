import { describe, expect, it } from 'vitest';
import type { BerthEventType, DataOf } from '#domain/events/index.js';
import { SAMPLES } from '#events/testing/samples.js';
import { foldBatch } from '../rows/fold.js';
import type { Row, ViewTable } from '../rows/row-set.js';
import { MemoryRows } from '../testing/memory-rows.js';
import { type Drawn, recorded } from '../testing/random-log.js';

const WORKER = 'worker-w1';

/** A log of samples, each a second after the one before, with what matters to a test said of it. */
class Story {
  readonly #drawn: Drawn[] = [];

  then<T extends BerthEventType>(type: T, change: Partial<DataOf<T>> = {}, stream = WORKER): this {
    const n = this.#drawn.length + 1;
    this.#drawn.push({
      stream,
      id: `event-${String(n)}`,
      event: { type, data: { ...SAMPLES[type], ...change } } as never,
      at: new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString(),
    });
    return this;
  }

  /** An earlier event (the last one by default) stands in the log a second time, with the same id. */
  again(index = -1): this {
    this.#drawn.push(this.#drawn.at(index)!);
    return this;
  }

  async rows<T extends ViewTable>(table: T): Promise<readonly Row<T>[]> {
    const store = new MemoryRows();
    await foldBatch(store, recorded(this.#drawn));
    return store.rows(table);
  }
}

const placed = () => new Story().then('PlacementDecided', { victims: [] });
const { residentId, decisionId } = SAMPLES.PlacementDecided;
const victimId = SAMPLES.PlacementDecided.victims[0]!.residentId;

describe('a resident', () => {
  it('is planned by its decision, loads, and is ready with what was measured', async () => {
    expect(await placed().rows('residents')).toMatchObject([
      { phase: 'planned', predicted_memory: [{ deviceId: 'ram', bytes: 1000 }], decision_id: decisionId },
    ]);
    const story = placed()
      .then('LoadStarted')
      .then('ResidentReady', { loadedAt: '2026-01-01T00:00:02.500Z' });
    expect(await story.rows('residents')).toMatchObject([
      { phase: 'ready', pid: 4242, measured_memory: [{ deviceId: 'ram', bytes: 1234 }], ended_at: null },
    ]);
    expect(await story.rows('decisions')).toMatchObject([
      { state: 'ready', actual_ready_seconds: 1, actual_load_seconds: 0.5, ended_event_id: 'event-3' },
    ]);
  });

  it('shows what an agent that adopts it measured anew', async () => {
    const { measured } = SAMPLES.ResidentReady;
    const story = placed()
      .then('LoadStarted')
      .then('ResidentReady')
      .then('ResidentAdopted', { pid: 7, measured: { ...measured, hostAnonymousBytes: 99 } });
    expect(await story.rows('residents')).toMatchObject([{ pid: 7, host_anonymous_bytes: 99 }]);
  });

  it('ends once: the second end changes nothing', async () => {
    const story = placed()
      .then('LoadStarted')
      .then('ResidentReady')
      .then('ResidentCrashed', { residentId })
      .then('ResidentFoundGone', { residentId })
      .then('ResidentEvicted', { residentId });
    expect(await story.rows('residents')).toMatchObject([{ phase: 'ended', end_reason: 'crashed' }]);
    expect(await story.rows('evictions')).toEqual([]);
  });

  it('is not brought back by a late ready or a late start', async () => {
    const story = placed().then('LoadFailed').then('LoadStarted').then('ResidentReady');
    expect(await story.rows('residents')).toMatchObject([{ phase: 'ended', end_reason: 'load-failed' }]);
    expect(await story.rows('decisions')).toMatchObject([
      { state: 'failed', failure_class: 'out-of-memory', reason: 'cannot allocate 3 GiB' },
    ]);
  });
});

describe('a decision', () => {
  const withVictim = () =>
    new Story()
      .then('PlacementDecided', { residentId: victimId, decisionId: 'earlier' as never, victims: [] })
      .then('LoadStarted', { residentId: victimId, decisionId: 'earlier' as never })
      .then('ResidentReady', { residentId: victimId })
      .then('PlacementDecided');

  it('marks its victims, and lets them stay when it is closed', async () => {
    expect((await withVictim().rows('residents'))[0]).toMatchObject({
      leaving_reason: 'room',
      leaving_decision_id: decisionId,
      leaving_started: false,
    });
    const closed = withVictim().then('DecisionClosed');
    expect((await closed.rows('residents')).map((r) => [r.phase, r.leaving_reason])).toEqual([
      ['ready', null],
      ['ended', null],
    ]);
    expect((await closed.rows('decisions')).map((d) => [d.state, d.code])).toEqual([
      ['ready', null],
      ['closed', 'expired'],
    ]);
  });

  it('does not let go of a victim whose eviction has begun', async () => {
    const story = withVictim().then('EvictionStarted').then('DecisionClosed');
    expect((await story.rows('residents'))[0]).toMatchObject({ leaving_started: true, phase: 'ready' });
  });

  it('is closed once, and not after it was ready', async () => {
    const story = placed().then('LoadStarted').then('ResidentReady').then('DecisionClosed');
    expect(await story.rows('decisions')).toMatchObject([{ state: 'ready' }]);
  });

  it('keeps its whole event beside the row', async () => {
    expect(await placed().rows('decision_workings')).toMatchObject([
      {
        event_id: 'event-1',
        stream: WORKER,
        revision: 0,
        data: { residentId, considered: [{ reason: 'fits' }] },
      },
    ]);
  });
});

describe('an eviction', () => {
  const running = () =>
    placed()
      .then('LoadStarted')
      .then('ResidentReady')
      .then('EvictionStarted', { residentId, reason: 'idle' });

  it('ends with what it freed, and with its resident', async () => {
    const story = running().then('ResidentEvicted', { residentId, reason: 'idle' });
    expect(await story.rows('evictions')).toMatchObject([
      { eviction_id: 'event-4', state: 'done', freed_bytes: 900, seconds: 0.5, model_key: 'owner/model' },
    ]);
    expect(await story.rows('residents')).toMatchObject([{ end_reason: 'evicted', leaving_reason: 'idle' }]);
  });

  it('that fails lets the resident stay; the next try is another eviction', async () => {
    const story = running()
      .then('EvictionFailed', { residentId })
      .again()
      .then('EvictionStarted', { residentId, reason: 'operator' });
    expect((await story.rows('evictions')).map((e) => [e.state, e.reason])).toEqual([
      ['failed', 'idle'],
      ['running', 'operator'],
    ]);
    expect(await story.rows('residents')).toMatchObject([{ leaving_reason: 'operator' }]);
  });

  it('is overtaken when the resident ends otherwise', async () => {
    const story = running().then('ResidentCrashed', { residentId });
    expect(await story.rows('evictions')).toMatchObject([{ state: 'overtaken' }]);
  });
});

describe('a call', () => {
  const calls = 'calls-owner/model';

  it('runs until its end, and keeps the first end', async () => {
    const story = new Story().then('CallStarted', {}, calls);
    expect(await story.rows('calls')).toMatchObject([{ outcome: null, stream: true, prompt_bytes: 512 }]);
    story.then('CallFinished', {}, calls).then('CallFinished', { outcome: 'abandoned' }, calls);
    expect(await story.rows('calls')).toMatchObject([
      { outcome: 'completed', output_tokens: 20, attempts: 1 },
    ]);
  });

  it('whose end stands before its start has both', async () => {
    const story = new Story().then('CallFinished', {}, calls).then('CallStarted', {}, calls);
    expect(await story.rows('calls')).toMatchObject([
      { outcome: 'completed', endpoint: '/v1/chat/completions', started_event_id: 'event-2' },
    ]);
  });
});

describe('a worker', () => {
  it('has its devices, RAM first, and loses one that is no longer measured', async () => {
    const story = new Story().then('CapacityMeasured').then('CapacityMeasured', { devices: [] });
    expect((await story.rows('devices')).map((d) => [d.device_id, d.present])).toEqual([
      ['ram', true],
      ['GPU-5a1e', false],
    ]);
  });

  it('keeps the newer limit when a retry writes the older one a second time', async () => {
    const story = new Story().then('LimitSet', { value: 1 }).then('LimitSet', { value: 2 }).again(0);
    expect(await story.rows('workers')).toMatchObject([{ limits: { designation: { ram: 2 } } }]);
  });

  it('has no limit any more when it was taken away', async () => {
    const story = new Story().then('LimitSet', { value: 1 }).then('LimitSet', { value: null });
    expect(await story.rows('workers')).toMatchObject([{ limits: { designation: {}, setting: {} } }]);
  });
});

describe('a model', () => {
  const catalog = 'catalog-w1';

  it('is shown with what it can do and what lies beside it', async () => {
    const lora = { role: 'adapter' as const, label: 'lora', files: [{ name: 'lora.gguf', bytes: 7 }] };
    const told = { abilities: ['tools' as const], trainedContextTokens: 8192, attachments: [lora] };
    const story = new Story().then('ModelFound', told, catalog);
    expect(await story.rows('models')).toMatchObject([
      {
        abilities: ['tools'],
        trained_context_tokens: 8192,
        attachments: [{ role: 'adapter', label: 'lora' }],
      },
    ]);
    story.then('ModelChanged', {}, catalog);
    expect(await story.rows('models')).toMatchObject([
      { abilities: [], trained_context_tokens: null, attachments: [] },
    ]);
  });

  it('that is gone stays known, and is back when it is found again', async () => {
    const story = new Story().then('ModelFound', {}, catalog).then('ModelGone', {}, catalog);
    expect(await story.rows('models')).toMatchObject([{ gone_at: '2026-01-01T00:00:02.000Z' }]);
    story.then('ModelFound', {}, catalog);
    expect(await story.rows('models')).toMatchObject([
      { gone_at: null, found_at: '2026-01-01T00:00:01.000Z' },
    ]);
  });
});
