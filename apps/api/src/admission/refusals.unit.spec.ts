import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { PlacementRefusedData } from '#domain/events/worker-events.js';
import { workerId } from '#domain/ids.js';
import { streams } from '#events/streams.js';
import { MemoryLog } from '#events/testing/memory-log.js';
import { SAMPLES } from '#events/testing/samples.js';
import { until } from '#events/testing/until.js';
import { Refusals } from './refusals.js';

const ID = workerId('01979d3e-0000-7000-8000-000000000001');
const CALL = '0197a000-0000-7000-8000-000000000000';

describe('refusals', () => {
  const given = () => {
    const clock = { ms: 0 };
    const log = new MemoryLog();
    const refusals = new Refusals(log, pino({ level: 'silent' }), () => clock.ms);
    let decisions = 0;
    const refuse = (more: Partial<PlacementRefusedData> = {}) =>
      refusals.record(
        ID,
        {
          ...SAMPLES.PlacementRefused,
          ...more,
          count: 1,
          decisionId: `decision-${decisions++}`,
        } as PlacementRefusedData,
        CALL,
      );
    const written = (count: number) =>
      until(() => log.stream(streams.worker(ID)).length === count).then(() =>
        log
          .stream(streams.worker(ID))
          .flatMap(({ event }) =>
            event.type === 'PlacementRefused' ? [[event.data.reason, event.data.count]] : [],
          ),
      );
    return { clock, log, refuse, written };
  };
  const { reason } = SAMPLES.PlacementRefused;

  it('that come again within a minute are counted, and told with the next one that is written', async () => {
    const { clock, refuse, written } = given();
    for (let n = 0; n < 4; n++) refuse();
    clock.ms = 59_999;
    refuse();
    refuse({ reason: 'another' });
    expect(await written(2)).toEqual([
      [reason, 1],
      ['another', 1],
    ]);
    clock.ms = 60_000;
    refuse();
    expect((await written(3)).at(-1)).toEqual([reason, 5]);
    clock.ms = 120_000;
    refuse();
    expect((await written(4)).at(-1)).toEqual([reason, 1]);
  });

  it('that the log did not take are written when they come again', async () => {
    const { log, refuse, written } = given();
    log.fault = () => ({ failure: { kind: 'unavailable', message: 'gone' }, written: false });
    refuse();
    log.fault = undefined;
    await until(() => {
      refuse();
      return log.all.length > 0;
    });
    expect(await written(1)).toEqual([[reason, 1]]);
  });
});
