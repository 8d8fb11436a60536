import { resolveModel } from '#domain/catalog/catalog.js';
import { BerthFailure } from '#domain/errors.js';
import { type ModelKey, modelKey, residentId, type WorkerId } from '#domain/ids.js';
import type { OperatorActionName } from '#domain/wire/index.js';
import { parseModelName } from '#placement/model-name.js';
import type { Fleet } from '../../fleet/fleet.js';
import { unknownModel } from '../../gateway/resolve.js';
import { fail } from '../problem/fail.js';
import type { RequestAction } from './operator.dto.js';

/** The root that is Berth's own: what lies elsewhere is another program's to remove. */
const OWN_ROOT = 'models';

type Known = Pick<Fleet, 'resident' | 'residentsOf' | 'workers' | 'worker' | 'modelsOn' | 'models'>;

/** What actions are aimed at, and what stands in their way. */
export class OperatorTargets {
  readonly #fleet: Known;
  readonly #waitingFor: (model: ModelKey) => number;

  constructor(fleet: Known, waitingFor: (model: ModelKey) => number) {
    this.#fleet = fleet;
    this.#waitingFor = waitingFor;
  }

  workersWith(action: OperatorActionName, target: string): readonly WorkerId[] {
    if (action === 'evict') {
      const placed = this.#fleet.resident(residentId(target));
      return placed ? [placed.workerId] : [];
    }
    const [name = ''] = target.split('@');
    return [...this.#fleet.workers.keys()].filter((id) => resolveModel(this.#fleet.modelsOn(id), name));
  }

  /** The target in its canonical form. @throws BerthFailure for one that is missing, unknown, or not wanted. */
  name(worker: WorkerId, { action, target, options }: RequestAction): string {
    if (action === 'evict-all' || action === 'refresh-models' || action === 'restart-agent') {
      if (target !== undefined || options !== undefined)
        fail('invalid_request', `${action} takes no target.`, 'target');
      return '';
    }
    if (target === undefined) {
      const what = action === 'evict' ? "a resident's id" : 'a model';
      fail('invalid_request', `${action} needs ${what} as its target.`, 'target');
    }
    if (action === 'evict') return target;
    const parsed = parseModelName(options === undefined ? target : `${target}@${options}`);
    if (!parsed.ok) throw new BerthFailure(parsed.error);
    const model = resolveModel(this.#fleet.modelsOn(worker), parsed.value.name);
    if (!model) throw new BerthFailure(unknownModel(parsed.value.name, this.#fleet.models));
    const [, ...given] = [...target.split('@'), ...(options === undefined ? [] : [options])];
    if (action === 'remove-model' && given.length > 0)
      fail(
        'invalid_request',
        'remove-model removes a model with all its artifacts; name it without options.',
        'target',
      );
    return [model.modelKey, ...given].join('@');
  }

  /** @throws BerthFailure for what is known to stand in its way. */
  check(worker: WorkerId, action: OperatorActionName, target: string): void {
    if (action === 'evict') this.#mayEvict(worker, target);
    if (action === 'remove-model') this.#mayRemove(worker, modelKey(target));
  }

  #mayEvict(worker: WorkerId, target: string): void {
    const resident = this.#fleet.worker(worker)?.residents.get(residentId(target));
    if (!resident) {
      fail(
        'not_found',
        `There is no resident ${target.slice(0, 200)} on this worker. \`berth residents\` lists them.`,
        'target',
      );
    }
    if (resident.phase === 'ready') return;
    fail(
      'conflict',
      `${resident.modelKey} is still loading, and what loads is never stopped. Evict it once it is ready.`,
    );
  }

  #mayRemove(worker: WorkerId, key: ModelKey): void {
    const model = this.#fleet.modelsOn(worker).find((m) => m.modelKey === key);
    if (model && model.root !== OWN_ROOT) {
      fail(
        'conflict',
        `${key} lies in the store of ${model.root}, which is not Berth's. Remove it with the program that put it there.`,
      );
    }
    const placed = this.#fleet.residentsOf(key).find((p) => p.workerId === worker);
    if (placed) {
      const { resident } = placed;
      const state = resident.phase === 'ready' ? 'loaded' : 'being loaded';
      fail(
        'conflict',
        `${key} is ${state} (resident ${resident.residentId}). Evict it first: \`berth operator evict ${resident.residentId}\`.`,
      );
    }
    const waiting = this.#waitingFor(key);
    if (waiting > 0) {
      const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`;
      fail('conflict', `${calls} for ${key}. Remove it when nothing waits any more.`);
    }
  }
}
