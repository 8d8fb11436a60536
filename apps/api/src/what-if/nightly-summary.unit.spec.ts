import { describe, expect, it } from 'vitest';
import { BerthFailure, berthError } from '#domain/errors.js';
import { apiId } from '#domain/ids.js';
import type { WhatIfItem, WhatIfReport, WhatIfRequest } from '#domain/wire/index.js';
import { streams } from '#events/streams.js';
import { MemoryLog } from '#events/testing/memory-log.js';
import { SAMPLES } from '#events/testing/samples.js';
import { lastNight, NightlySummary } from './nightly-summary.js';

/** What a what-if of a day gives, where it is asked for. */
const report: WhatIfReport = {
  ...SAMPLES.WhatIfSummarised,
  reproduced: { decisions: 3, identical: 3, differences: [] },
  notes: [],
};

class Night {
  readonly log = new MemoryLog();
  readonly asked: WhatIfRequest[] = [];
  readonly warned: string[] = [];
  nowMs = new Date(2026, 0, 5, 3, 10).getTime();
  /** What the next what-if comes to. */
  next: Pick<WhatIfItem, 'report' | 'error'> = { report };
  busy = false;

  api(name: string, apis = [name]): NightlySummary {
    return new NightlySummary({
      log: this.log,
      apiId: apiId(name),
      apis: () => apis.map((each) => apiId(each)),
      now: () => this.nowMs,
      logger: {
        info: () => undefined,
        warn: (_fields: object, text: string) => void this.warned.push(text),
      } as never,
      whatIfs: {
        start: (request) => {
          if (this.busy) throw new BerthFailure(berthError('conflict', 'A what-if runs already.'));
          this.asked.push(request);
          return { id: 'w', state: 'running', startedAt: '', request };
        },
        ended: () => Promise.resolve(this.next),
      },
    });
  }

  written = async (): Promise<readonly string[]> =>
    (await this.log.readBackwards(streams.whatIf, 9)).map(({ event }) =>
      event.type === 'WhatIfSummarised' ? event.data.day : event.type,
    );
}

describe('the summary of a night', () => {
  it('is of the 24 hours up to three in the morning, by the clock of the place', () => {
    const at = new Date(2026, 0, 5, 3);
    const night = { day: '2026-01-05', fromMs: at.getTime() - 86_400_000, toMs: at.getTime() };
    expect(lastNight(at.getTime())).toEqual(night);
    expect(lastNight(new Date(2026, 0, 6, 2, 59).getTime())).toEqual(night);
    expect(lastNight(new Date(2026, 0, 6, 3).getTime()).day).toBe('2026-01-06');
  });

  it('is written once, however often and by whomever it is looked for', async () => {
    const night = new Night();
    const api = night.api('a');
    await api.look();
    await api.look();
    await night.api('b').look();
    expect(await night.written()).toEqual(['2026-01-05']);
    expect(night.asked).toHaveLength(1);
    night.nowMs += 86_400_000;
    await api.look();
    expect(await night.written()).toEqual(['2026-01-06', '2026-01-05']);
    expect(night.asked[1]?.from).toBe(night.asked[0]?.to);
  });

  it('has the same id from two apis that computed it at once', async () => {
    const night = new Night();
    await Promise.all([night.api('a').look(), night.api('b').look()]);
    const ids = (await night.log.readBackwards(streams.whatIf, 9)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(1);
  });

  it('is left to the first of the apis for an hour, and done by another one after that', async () => {
    const night = new Night();
    const second = night.api('b', ['b', 'a']);
    await second.look();
    expect(night.asked).toEqual([]);
    night.nowMs += 3_600_000;
    await second.look();
    expect(await night.written()).toEqual(['2026-01-05']);
  });

  it('waits for a what-if that somebody asked for, and writes nothing of a day without calls', async () => {
    const night = new Night();
    const api = night.api('a');
    night.busy = true;
    await api.look();
    night.busy = false;
    night.next = { report: { ...report, calls: 0 } };
    await api.look();
    await api.look();
    expect(night.asked).toHaveLength(1);
    expect(await night.written()).toEqual([]);
  });

  it('is tried three times, and says how to ask for it by hand then', async () => {
    const night = new Night();
    const api = night.api('a');
    night.next = { error: 'More than 200,000 calls lie in this time; choose a shorter one.' };
    for (let n = 0; n < 5; n += 1) await api.look();
    expect(night.asked).toHaveLength(3);
    expect(night.warned.at(-1)).toMatch(/More than 200,000 calls.*berth what-if --from/);
  });
});
