import 'reflect-metadata';
import { EventEmitter } from 'node:events';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { BerthFailure } from '#domain/errors.js';
import { DAY_MS, loggedDay } from '#placement/testing/logged-day.js';
import { TimeOfLogBuilder } from '#placement/what-if/time-of-log.js';
import { WhatIfController } from '../admin/what-if/what-if.controller.js';
import { AskWhatIf } from '../admin/what-if/what-if.dto.js';
import { answer } from './answer.js';
import { queryPipe } from '../admin/problem/query-pipe.js';
import { WhatIfs } from './what-ifs.js';

const timeOf = (calls: number) => {
  const builder = new TimeOfLogBuilder(DAY_MS, DAY_MS + 86_400_000);
  for (const recorded of loggedDay({ calls }).events) builder.add(recorded);
  return builder.finish();
};

describe('the answer to a what-if', () => {
  it('holds what happened, what would have, and the least possible beside each other', async () => {
    const steps: string[] = [];
    const change = { settings: { evictionOrder: 'lru' as const } };
    const report = await answer(timeOf(60), [change], true, (step) => steps.push(step));
    const { reproduced, really, asItWas, changes, least } = report;
    expect(reproduced.identical).toBe(reproduced.decisions);
    expect(asItWas.loads).toBe(really.loads);
    expect(changes.map(({ name }) => name)).toEqual(['evictionOrder lru', '16 GiB more on card']);
    expect(changes[1]?.loadsSaved).toBeGreaterThan(0.1);
    expect(least.ratio).toBeGreaterThanOrEqual(1);
    expect(least.delayedSeconds).toBeLessThanOrEqual(least.atOnceSeconds ?? 0);
    expect(report.sentence).toMatch(/^You were at .*; 16 GiB more would have saved \d+ % of the loads\.$/);
    expect(steps).toContain('simulating evictionOrder lru');
  });

  it('says plainly that the least possible was not computed, and why a change cannot be made', async () => {
    const time = timeOf(20);
    const { least, sentence } = await answer(time, [], false, () => undefined);
    expect(least).toMatchObject({ notComputed: 'it was not asked for' });
    expect(sentence).toContain('was not computed (it was not asked for)');
    const twice = { devices: [{ name: 'card', bytes: 1 }] };
    const nobody = { ...time, end: { ...time.end, workers: [] } };
    await expect(answer(nobody, [twice], false, () => undefined)).rejects.toThrow(/No worker/);
  });
});

/** A thread that says what the test has it say. */
class StagedThread extends EventEmitter {
  terminated = 0;
  terminate(): Promise<number> {
    this.terminated += 1;
    this.emit('exit', 1);
    return Promise.resolve(1);
  }
}

describe('a what-if that runs', () => {
  const begun = (mostMs?: number) => {
    const threads: StagedThread[] = [];
    const whatIfs = new WhatIfs({
      eventstoreUrl: 'esdb://nowhere',
      now: () => DAY_MS,
      startThread: () => {
        const thread = new StagedThread();
        threads.push(thread);
        return thread;
      },
      ...(mostMs === undefined ? {} : { mostMs }),
    });
    return { whatIfs, threads, item: whatIfs.start({}) };
  };

  it('tells its step and how far it is, and a second one is a conflict that names it until it has ended', async () => {
    const { whatIfs, threads, item } = begun();
    threads[0]?.emit('message', { kind: 'step', step: 'simulating', fraction: 0.5 });
    expect(whatIfs.of(item.id)).toMatchObject({ state: 'running', step: 'simulating', fraction: 0.5 });
    expect(() => whatIfs.start({})).toThrow(item.id);
    threads[0]?.emit('message', { kind: 'failed', message: 'No calls lie in this time.' });
    expect(await whatIfs.ended(item.id)).toMatchObject({
      state: 'failed',
      error: 'No calls lie in this time.',
    });
    expect(whatIfs.start({})).toMatchObject({ state: 'running' });
  });

  it('makes way for the next one as soon as it says that it is done, however long its thread takes to go', () => {
    const { whatIfs, threads, item } = begun();
    threads[0]?.emit('message', { kind: 'done', report: undefined });
    expect(whatIfs.of(item.id)?.state).toBe('done');
    const next = whatIfs.start({});
    threads[0]?.emit('exit');
    expect([item, next].map(({ id }) => whatIfs.of(id)?.state)).toEqual(['done', 'running']);
  });

  it('is ended when it takes too long, and says what to do', async () => {
    const { whatIfs, threads, item } = begun(1);
    expect(await whatIfs.ended(item.id)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/not done within .*choose a shorter time/) as string,
    });
    expect(threads[0]?.terminated).toBe(1);
  });

  it('says so when its thread dies by itself, or with the api', async () => {
    const broken = begun();
    broken.threads[0]?.emit('error', new Error('out of memory'));
    broken.threads[0]?.emit('exit');
    expect(broken.whatIfs.of(broken.item.id)).toMatchObject({ error: 'It ended by itself: out of memory' });
    const stopped = begun();
    await stopped.whatIfs.stop();
    expect(stopped.whatIfs.of(stopped.item.id)).toMatchObject({
      error: 'It was stopped before it was done.',
    });
  });
});

describe('what may be asked', () => {
  const whatIfs = new WhatIfs({ eventstoreUrl: 'esdb://nowhere', now: () => DAY_MS });
  const controller = new WhatIfController(whatIfs);
  const refusalOf = (ask: object): string => {
    try {
      controller.ask(plainToInstance(AskWhatIf, ask));
    } catch (error) {
      if (error instanceof BerthFailure) return error.error.message;
      throw error;
    }
    throw new Error('it was not refused');
  };

  it('is a time that begins before it ends and is no longer than a month', () => {
    expect(refusalOf({ from: '2026-01-06T00:00:00Z' })).toMatch(/must begin before it ends/);
    expect(refusalOf({ from: '2025-01-05T00:00:00Z' })).toMatch(/31 days at most/);
  });

  it('is a placement setting with a value that it can have', () => {
    expect(refusalOf({ settings: { evictionOrder: 'best' } })).toMatch(/must be one of loss, lru/);
    expect(refusalOf({ settings: { port: 1 } })).toMatch(/no placement setting "port"/);
  });

  it.each([
    { ramMaxBytes: 0 },
    { vramMaxBytes: '24GiB' },
    { devices: [{ name: 'card' }] },
    { devices: 'card' },
    { moreWorkers: 99 },
    { from: 'yesterday' },
    { settings: 'lru' },
  ])('is refused when it is malformed: %j', (ask) => {
    expect(validateSync(plainToInstance(AskWhatIf, ask))).not.toEqual([]);
  });

  it('is refused by the path of the field that is wrong, in a list too', async () => {
    const pipe = queryPipe();
    const body = {
      devices: [
        { name: 'card', bytes: 1 },
        { name: 'other', bytes: 0, colour: 'red' },
      ],
    };
    const refused: unknown = await pipe
      .transform(body, { type: 'body', metatype: AskWhatIf })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(BerthFailure);
    const { param, message } = (refused as BerthFailure).error;
    expect(['devices.1.bytes', 'devices.1.colour']).toContain(param);
    expect(message).toContain('devices.1.bytes must not be less than 1');
    expect(message).toContain('devices.1.colour is not a field of it');
  });

  it('is answered with what is missing when it is not known', () => {
    expect(() => controller.one('nothing')).toThrow(/no what-if nothing/);
    expect(controller.list()).toEqual({ items: [] });
  });
});
