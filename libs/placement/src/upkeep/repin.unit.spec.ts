import { describe, expect, it } from 'vitest';
import { contract, isoBefore, resident, residents, worker } from '../testing/factories.js';
import { repins, type RepinQuestion } from './repin.js';

const cpuTopology = Array.from({ length: 8 }, (_, cpu) => ({ cpu, core: cpu, node: 0 }));
const onCores = (name: string, cores: readonly number[], over: Parameters<typeof resident>[1] = {}) =>
  resident(name, { contract: contract({ threads: cores.length, cores }), ...over });
type Resident = ReturnType<typeof resident>;

const moved = (list: readonly Resident[], serving: readonly Resident[], over: Partial<RepinQuestion> = {}) =>
  repins({
    worker: worker({ physicalCores: 8, cpuTopology, residents: residents(...list) }),
    activity: new Map(serving.map(({ residentId }) => [residentId, { callsInFlight: 1 }])),
    isPinned: () => false,
    ...over,
  }).map(({ residentId, from, to }) => [residentId, from, to]);

describe('a resident whose cores were claimed while it was idle', () => {
  const old = onCores('old', [6, 7], { decidedAt: isoBefore(900) });
  const young = onCores('young', [6, 7], { decidedAt: isoBefore(100) });

  it('is bound to free ones when it serves again', () => {
    expect(moved([old, young], [old, young])).toEqual([[old.residentId, [6, 7], [4, 5]]]);
    expect(moved([young, old], [old, young])).toEqual([[old.residentId, [6, 7], [4, 5]]]);
  });

  it('stays where it is as long as one of the two is idle', () => {
    expect(moved([old, young], [old])).toEqual([]);
    expect(moved([old, young], [young])).toEqual([]);
  });

  it('goes out of the way of one that loads, which is never bound anew', () => {
    const loading = onCores('loading', [5, 6], { phase: 'loading', decidedAt: isoBefore(2000) });
    expect(moved([young, loading], [young])).toEqual([[young.residentId, [6, 7], [4, 7]]]);
  });

  it('shares them where there are not as many free ones, and where its settings pin it', () => {
    const wide = onCores('wide', [1, 2, 3, 4, 5], { decidedAt: isoBefore(50) });
    expect(moved([old, young, wide], [old, young, wide])).toEqual([]);
    expect(moved([old, young], [old, young], { isPinned: () => true })).toEqual([]);
  });

  it('is not moved for one with nothing in RAM, nor bound where nothing was bound', () => {
    const onCard = onCores('card', [6, 7]);
    const card = { ...onCard, contract: { ...onCard.contract, gpuLayers: 5 } };
    expect(moved([old, card], [old, card])).toEqual([]);
    const loose = resident('loose', { contract: contract({ threads: 2 }) });
    expect(moved([old, loose], [old, loose])).toEqual([]);
  });
});
