import type { FoundModel } from '#domain/events/catalog-events.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { PlacementInput } from '#placement/contract.js';
import { betterVerdict, type ShortVerdict, shortVerdict } from '#placement/verdicts.js';
import type { Fleet, ServableModel } from '../fleet/fleet.js';

export interface ModelVerdictOptions {
  readonly fleet: Pick<Fleet, 'worker' | 'modelOn' | 'catalogRevision' | 'history' | 'settings' | 'models'>;
  /** What a decision would be made from, of what is known at this moment. */
  readonly inputNow: (worker: WorkerState, model: FoundModel) => PlacementInput;
}

/** What one listing may work out before it answers with what was known before. */
const LISTING_MS = 15;
/** The rest is worked out behind it, this long at a time: calls go on in between. */
const SLICE_MS = 5;

interface Known {
  /** What it was worked out from. */
  readonly of: string;
  readonly verdict: ShortVerdict;
}

/**
 * Whether each model could be placed, in one word, for listings: pages ask for them all the time, and a fleet may have
 * hundreds. Worked out again only when what it was made from has changed.
 */
export class ModelVerdicts {
  readonly #o: ModelVerdictOptions;
  readonly #known = new Map<ModelKey, Known>();
  readonly #stale = new Set<ModelKey>();
  #slice: NodeJS.Immediate | undefined;

  constructor(options: ModelVerdictOptions) {
    this.#o = options;
  }

  /** For one answer: what it asks for is worked out until its time is used up. */
  reader(): (servable: ServableModel) => ShortVerdict {
    const until = performance.now() + LISTING_MS;
    return (servable) => {
      const key = servable.model.modelKey;
      const of = this.#madeFrom(servable);
      const known = this.#known.get(key);
      if (known?.of === of) return known.verdict;
      if (performance.now() < until) return this.#workOut(servable, of);
      this.#stale.add(key);
      this.#slice ??= setImmediate(() => this.#goOn());
      return known?.verdict ?? { fits: 'unknown', reason: 'it is being worked out; ask again' };
    };
  }

  stop(): void {
    clearImmediate(this.#slice);
  }

  #goOn(): void {
    this.#slice = undefined;
    const until = performance.now() + SLICE_MS;
    for (const key of this.#stale) {
      if (performance.now() > until) {
        this.#slice = setImmediate(() => this.#goOn());
        return;
      }
      this.#stale.delete(key);
      const servable = this.#o.fleet.models.get(key);
      if (servable) this.#workOut(servable, this.#madeFrom(servable));
      else this.#known.delete(key);
    }
  }

  #madeFrom({ model, workers }: ServableModel): string {
    const { fleet } = this.#o;
    const revisions = (id: WorkerId) => [
      fleet.worker(id)?.revision,
      fleet.catalogRevision(id),
      fleet.history(id, model.modelKey).revision,
    ];
    return [fleet.settings.version, ...workers.flatMap(revisions)].join();
  }

  #workOut({ model, workers }: ServableModel, of: string): ShortVerdict {
    const { fleet, inputNow } = this.#o;
    const verdicts = workers.flatMap((id) => {
      const worker = fleet.worker(id);
      const found = fleet.modelOn(id, model.modelKey);
      return worker?.registered && !worker.lost && found ? [shortVerdict(inputNow(worker, found))] : [];
    });
    const verdict =
      verdicts.length === 0
        ? ({ fits: 'unknown', reason: 'no worker that has it is there' } as const)
        : verdicts.reduce(betterVerdict);
    this.#known.set(model.modelKey, { of, verdict });
    return verdict;
  }
}
