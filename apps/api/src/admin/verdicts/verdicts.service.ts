import { Inject, Injectable } from '@nestjs/common';
import type { FoundModel } from '#domain/events/catalog-events.js';
import { modelKey } from '#domain/ids.js';
import { BerthFailure } from '#domain/errors.js';
import type { VerdictItem } from '#domain/wire/index.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { PlacementInput } from '#placement/contract.js';
import { verdictsOf } from '#placement/verdicts.js';
import { Fleet } from '../../fleet/fleet.js';
import { unknownModel } from '../../gateway/resolve.js';

/** What a decision about a model on a worker would be made from now. */
export type InputFor = (worker: WorkerState, model: FoundModel) => Promise<PlacementInput>;
export const INPUT_FOR = Symbol('input of a decision');

/** Whether a model fits each worker that has it, how, and how fast: worked out when it is asked, from the fold. */
@Injectable()
export class VerdictsService {
  readonly #fleet: Fleet;
  readonly #inputFor: InputFor;

  constructor(@Inject(Fleet) fleet: Fleet, @Inject(INPUT_FOR) inputFor: InputFor) {
    this.#fleet = fleet;
    this.#inputFor = inputFor;
  }

  async of(key: string): Promise<readonly VerdictItem[]> {
    const servable = this.#fleet.models.get(modelKey(key));
    if (!servable) throw new BerthFailure(unknownModel(key, this.#fleet.models));
    const all: VerdictItem[] = [];
    for (const id of servable.workers) {
      const worker = this.#fleet.worker(id);
      const model = this.#fleet.modelOn(id, modelKey(key));
      if (!worker?.registered || worker.lost || !model) continue;
      const verdicts = verdictsOf(await this.#inputFor(worker, model));
      all.push(...verdicts.map((v) => ({ workerId: id, workerName: worker.name, modelKey: key, ...v })));
    }
    return all;
  }
}
