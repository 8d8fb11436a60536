import { resolveModel } from '#domain/catalog/catalog.js';
import type { FoundModel } from '#domain/events/catalog-events.js';
import type { WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { noOptions } from '#placement/model-name.js';
import type { Logger } from '#runtime/logger.js';
import type { Decider } from '../admission/decider.js';
import type { TermsByWorker } from '../admission/terms.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Chore } from './upkeep.js';

export interface PreloadOptions {
  readonly fleet: Fleet;
  readonly terms: TermsByWorker;
  readonly decider: Pick<Decider, 'propose'>;
  /** Calls that wait, for whatever model. */
  readonly waiting: () => number;
  readonly logger: Logger;
  readonly now: () => number;
}

/** What did not fit is looked at again this often, though nothing changed: a failed load may be tried again by then. */
const AGAIN_MS = 30_000;

/** Loads the models that a worker is to have loaded, in their order, as far as room is free; again when it is freed. */
export class Preload implements Chore {
  readonly #o: PreloadOptions;
  readonly #looked = new Map<WorkerId, { readonly at: string; readonly atMs: number }>();
  readonly #unknown = new Set<string>();

  constructor(options: PreloadOptions) {
    this.#o = options;
  }

  /** In their order; names that no model on the worker has are left out. */
  modelsOf(id: WorkerId): readonly FoundModel[] {
    const { fleet, terms } = this.#o;
    const names = terms.settingsOf(id).preload;
    if (!names) return [];
    const models = fleet.modelsOn(id);
    return names.flatMap((name) => resolveModel(models, name) ?? []);
  }

  look(worker: WorkerState): void {
    const { fleet, terms, waiting, now } = this.#o;
    const id = worker.workerId;
    if (!terms.settingsOf(id).preload) return;
    this.#sayUnknown(id);
    // Calls come first, and loads of one machine go one after the other.
    if (waiting() > 0 || worker.openDecisions.size > 0) return;
    const at = `${worker.revision} ${fleet.catalogRevision(id)} ${fleet.settings.version}`;
    const before = this.#looked.get(id);
    if (before?.at === at && now() - before.atMs < AGAIN_MS) return;
    for (const model of this.modelsOf(id)) {
      const there = fleet.residentsOf(model.modelKey).filter((placed) => placed.workerId === id);
      // Its end is near, and its turn comes with it.
      if (there.length > 0 && there.every(({ resident }) => resident.leaving)) return;
      if (there.length > 0) continue;
      const outcome = this.#o.decider.propose(worker, {
        model,
        cause: { kind: 'preload' },
        ...terms.of({ model, options: noOptions }, id),
      });
      if (outcome.kind !== 'wait' && outcome.kind !== 'refused' && outcome.kind !== 'held') return;
    }
    this.#looked.set(id, { at, atMs: now() });
  }

  #sayUnknown(id: WorkerId): void {
    const models = this.#o.fleet.modelsOn(id);
    for (const name of this.#o.terms.settingsOf(id).preload ?? []) {
      if (resolveModel(models, name) || this.#unknown.has(`${id} ${name}`)) continue;
      this.#unknown.add(`${id} ${name}`);
      this.#o.logger.warn(
        { worker: id, model: name },
        'a model that is to be preloaded is not on this worker',
      );
    }
  }
}
