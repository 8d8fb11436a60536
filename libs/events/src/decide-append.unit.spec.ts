import { describe, expect, it } from 'vitest';
import type { WorkerEvent } from '#domain/events/index.js';
import { decisionId } from '#domain/ids.js';
import { appendDecision, type DecisionEvent } from './decide-append.js';
import type { AppendFailure, NewEvent } from './event-log.js';
import { MemoryLog } from './testing/memory-log.js';
import { SAMPLES } from './testing/samples.js';

const stream = 'worker-a';
const cause = { correlationId: 'c', causationId: 'c' };
const decision = (id: string, eventId = `event-of-${id}`): NewEvent<DecisionEvent> => ({
  id: eventId,
  event: { type: 'PlacementDecided', data: { ...SAMPLES.PlacementDecided, decisionId: decisionId(id) } },
  cause,
});
const pin = (id: string): NewEvent<WorkerEvent> => ({
  id,
  event: { type: 'PinSet', data: SAMPLES.PinSet },
  cause,
});
const unavailable: AppendFailure = { kind: 'unavailable', message: 'no answer' };

describe('appending a decision', () => {
  it('is done when nobody was in between, on an empty stream too', async () => {
    const log = new MemoryLog();
    expect(await appendDecision(log, stream, -1, decision('d'))).toMatchObject({ kind: 'done', revision: 0 });
    expect(await appendDecision(log, stream, 0, decision('e'))).toMatchObject({ kind: 'done', revision: 1 });
  });

  it('hands over what others wrote first, and the revision to append after', async () => {
    const log = new MemoryLog();
    await log.append(stream, [pin('a'), pin('b'), pin('c')], 'any');
    const result = await appendDecision(log, stream, 0, decision('d'));
    expect(result).toMatchObject({ kind: 'overtaken', revision: 2 });
    if (result.kind !== 'overtaken') return;
    expect(result.newEvents.map((e) => e.id)).toEqual(['b', 'c']);
    expect(await appendDecision(log, stream, result.revision, decision('d'))).toMatchObject({
      kind: 'done',
      revision: 3,
    });
  });

  it('finds its own decision among the new events: it was written by an earlier try', async () => {
    const log = new MemoryLog();
    await log.append(stream, [pin('a')], 'any');
    await log.append(stream, [decision('d', 'first-try')], 'any');
    await log.append(stream, [pin('b')], 'any');
    expect(await appendDecision(log, stream, 0, decision('d', 'second-try'))).toMatchObject({
      kind: 'done',
      revision: 1,
    });
    expect(log.stream(stream)).toHaveLength(3);
  });

  it('tries again under the same id when an answer was lost, and writes once', async () => {
    const log = new MemoryLog();
    let faults = 2;
    log.fault = () => (faults-- > 0 ? { failure: unavailable, written: true } : undefined);
    expect(await appendDecision(log, stream, -1, decision('d'))).toMatchObject({ kind: 'done', revision: 0 });
    expect(log.stream(stream)).toHaveLength(1);
  });

  it('says that the outcome is unknown when the log stays away', async () => {
    const log = new MemoryLog();
    log.fault = () => ({ failure: unavailable, written: false });
    expect(await appendDecision(log, stream, -1, decision('d'), { deadlineMs: 30 })).toEqual(unavailable);
  });

  it('does not repeat what is refused', async () => {
    const log = new MemoryLog();
    let tries = 0;
    log.fault = () => {
      tries++;
      return { failure: { kind: 'refused', message: 'too large' }, written: false };
    };
    expect(await appendDecision(log, stream, -1, decision('d'))).toEqual({
      kind: 'refused',
      message: 'too large',
    });
    expect(tries).toBe(1);
  });

  it('gives the same room away once: of many deciders each learns of those before', async () => {
    const log = new MemoryLog();
    const deciders = Array.from({ length: 8 }, async (_, i) => {
      let revision = -1;
      for (;;) {
        const result = await appendDecision(log, stream, revision, decision(`d${i}`));
        if (result.kind === 'done') return result.revision;
        if (result.kind !== 'overtaken') throw new Error(result.message);
        expect(result.newEvents.length).toBeGreaterThan(0);
        revision = result.revision;
      }
    });
    const revisions = await Promise.all(deciders);
    expect(revisions.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});
