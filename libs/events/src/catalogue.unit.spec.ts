import { describe, expect, it } from 'vitest';
import { workerId } from '#domain/ids.js';
import { catalogue, categoryOf, streamNamed } from './catalogue.js';

describe('the catalogue of streams', () => {
  it('knows a stream again by its name, with its id inside the state', () => {
    for (const name of [
      'worker-w1',
      'calls-owner/model-2',
      'history-w1~owner/model-2',
      'catalog-w1',
      'model-owner/model-2',
      'settings-w1~owner/model',
      'key-k1',
      'operator-w1',
      'pull-w1',
      'readings-w1',
      'fleet-apis',
      'fleet-what-if',
    ]) {
      expect(streamNamed(name)?.name).toBe(name);
    }
    expect(streamNamed('history-w1~two\nlines')?.fold.initial()).toMatchObject({ modelKey: 'two\nlines' });
    expect(streamNamed('history-w1~o/m-2')?.fold.initial()).toMatchObject({
      workerId: 'w1',
      modelKey: 'o/m-2',
    });
    expect(catalogue.settings('fleet').fold.initial()).toMatchObject({ scope: 'fleet' });
    expect(catalogue.operator(workerId('w1')).name).toBe('operator-w1');
  });

  it('passes over what is not of Berth, and what nothing is folded from', () => {
    expect(categoryOf('readings-w1')).toBe('readings');
    for (const name of ['$stats-0', 'order-17', 'worker', 'log-identity', 'history-w1', 'fleet-other'])
      expect(streamNamed(name)).toBeUndefined();
  });
});
