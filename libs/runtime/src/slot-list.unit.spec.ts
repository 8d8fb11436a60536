import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_SLOT, SlotList } from './slot-list.js';

it('holds what a set would hold, whatever comes and goes', () => {
  const steps = fc.array(fc.tuple(fc.boolean(), fc.nat(9)));
  fc.assert(
    fc.property(steps, (all) => {
      const items = Array.from({ length: 10 }, () => ({ slot: NO_SLOT }));
      const list = new SlotList<{ slot: number }>();
      const model = new Set<{ slot: number }>();
      for (const [adds, which] of all) {
        const item = items[which]!;
        if (adds) {
          list.add(item);
          model.add(item);
        } else expect(list.delete(item)).toBe(model.delete(item));
        expect(list.size).toBe(model.size);
        expect(items.filter((each) => list.has(each))).toEqual(items.filter((each) => model.has(each)));
        expect(new Set(list)).toEqual(model);
      }
    }),
  );
});
