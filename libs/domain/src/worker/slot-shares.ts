import type { ApiId, ResidentId } from '../ids.js';

/** What an api said of the slots of a resident. A field that is 0 is left out on the wire. */
export interface SlotUse {
  readonly residentId: string;
  readonly holds?: number;
  readonly waiting?: number;
  readonly of?: number;
  readonly number?: number;
}

export interface SlotShare {
  readonly residentId: string;
  readonly slots: number;
  readonly number: number;
  readonly wanted: boolean;
}

interface Holder {
  /** The most calls that it can have under way: what it was given, until it says that it gave some back. */
  holds: number;
  /** Calls that it has said wait, less the slots that it was given for them since. */
  waiting: number;
  /** Of the last share that it was sent. */
  number: number;
  wanted: boolean;
  /** When it was last given a slot: of equals the one who waited longest is next. */
  givenAt: number;
}

interface Resident {
  of: number;
  readonly holders: Map<ApiId, Holder>;
}

/**
 * Shares the slots of each engine out among the apis, which cannot see each other's calls. A slot is one api's until that
 * api has said that it gave it back, so that all together never use more than there are; who holds least is given first.
 */
export class SlotShares {
  readonly #send: (api: ApiId, share: SlotShare) => void;
  readonly #residents = new Map<ResidentId, Resident>();
  #given = 0;

  constructor(send: (api: ApiId, share: SlotShare) => void) {
    this.#send = send;
  }

  said(api: ApiId, use: SlotUse): void {
    const id = use.residentId as ResidentId;
    const resident = this.#residents.get(id) ?? { of: 0, holders: new Map<ApiId, Holder>() };
    this.#residents.set(id, resident);
    const before = resident.holders.get(api);
    const holder = before ?? { holds: 0, waiting: 0, number: 0, wanted: false, givenAt: 0 };
    resident.holders.set(api, holder);
    resident.of = use.of ?? resident.of;
    holder.waiting = use.waiting ?? 0;
    const holds = use.holds ?? 0;
    // Said before it heard of its last share: it may use that one all the same.
    holder.holds = (use.number ?? 0) >= holder.number ? holds : Math.max(holder.holds, holds);
    this.#shareOut(id, resident);
  }

  /** The api has no line any more: what it held is the others'. */
  left(api: ApiId): void {
    for (const [id, resident] of this.#residents) {
      if (!resident.holders.delete(api)) continue;
      if (resident.holders.size === 0) this.#residents.delete(id);
      else this.#shareOut(id, resident);
    }
  }

  #shareOut(id: ResidentId, resident: Resident): void {
    const changed = new Set<ApiId>();
    let free = resident.of - [...resident.holders.values()].reduce((sum, { holds }) => sum + holds, 0);
    const give = (next: readonly [ApiId, Holder]) => {
      const [api, holder] = next;
      holder.holds += 1;
      holder.givenAt = this.#given += 1;
      free -= 1;
      changed.add(api);
    };
    while (free > 0) {
      const next = leastHolding([...resident.holders].filter(([, { waiting }]) => waiting > 0));
      if (!next) break;
      next[1].waiting -= 1;
      give(next);
    }
    const unmet = [...resident.holders].flatMap(([api, { waiting }]) => (waiting > 0 ? [api] : []));
    // What nobody waits for is kept by those who call, so that their next call need not ask.
    while (free > 0) {
      const next = leastHolding([...resident.holders].filter(([, { holds }]) => holds > 0));
      if (!next) break;
      give(next);
    }
    for (const [api, holder] of resident.holders) {
      const wanted = unmet.some((other) => other !== api);
      if (holder.wanted === wanted && !changed.has(api)) continue;
      holder.wanted = wanted;
      holder.number += 1;
      this.#send(api, { residentId: id, slots: holder.holds, number: holder.number, wanted });
    }
    const isIdle = [...resident.holders.values()].every(({ holds, waiting }) => holds === 0 && waiting === 0);
    if (isIdle) this.#residents.delete(id);
  }
}

function leastHolding(holders: readonly (readonly [ApiId, Holder])[]): readonly [ApiId, Holder] | undefined {
  let least: readonly [ApiId, Holder] | undefined;
  for (const each of holders) {
    const [, { holds, givenAt }] = each;
    if (!least || holds < least[1].holds || (holds === least[1].holds && givenAt < least[1].givenAt))
      least = each;
  }
  return least;
}
