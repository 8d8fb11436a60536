import type { ModelKey, ResidentId } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { noOptions } from '#placement/model-name.js';
import { growBack } from '#placement/upkeep/grow.js';
import type { Activity } from '../admission/activity.js';
import type { Decider } from '../admission/decider.js';
import type { TermsByWorker } from '../admission/terms.js';
import type { CallHistories } from '../fleet/call-histories.js';
import type { Fleet } from '../fleet/fleet.js';
import { planOf, trainedOf, withContext } from './own-plan.js';
import type { Chore } from './upkeep.js';

export interface GrowBackOptions {
  readonly fleet: Fleet;
  readonly activity: Activity;
  readonly callHistories: CallHistories;
  readonly terms: TermsByWorker;
  readonly decider: Pick<Decider, 'consider' | 'propose'>;
  readonly waitingFor: (model: ModelKey) => number;
  readonly now: () => number;
}

/** Has residents reloaded with a larger context when calls wanted more and there is room for it. */
export class GrowBack implements Chore {
  readonly #o: GrowBackOptions;
  /** Since when a larger context of a resident has had its room. */
  readonly #roomSince = new Map<ResidentId, number>();

  constructor(options: GrowBackOptions) {
    this.#o = options;
  }

  look(worker: WorkerState): void {
    for (const id of this.#roomSince.keys()) if (!this.#o.fleet.resident(id)) this.#roomSince.delete(id);
    // A load that is under way takes its room, or gives some back: what there is will be another.
    if (worker.openDecisions.size > 0) return;
    for (const resident of worker.residents.values()) if (this.#grows(worker, resident)) return;
  }

  #grows(worker: WorkerState, resident: Resident): boolean {
    const { fleet, activity, callHistories, terms, decider, waitingFor, now } = this.#o;
    const { residentId, modelKey, contract } = resident;
    const model = fleet.modelOn(worker.workerId, modelKey);
    const trainedTokens = trainedOf(model, resident);
    if (!model || trainedTokens === undefined || trainedTokens <= contract.contextTokens) return false;
    const current = terms.of({ model, options: noOptions }, worker.workerId);
    const proposalAt = (tokens: number, wantedTokens: number) =>
      withContext(resident, model, current, tokens, {
        kind: 'grow',
        fromTokens: contract.contextTokens,
        wantedTokens,
      });
    const nowMs = now();
    const since = this.#roomSince.get(residentId);
    const verdict = growBack({
      resident,
      trainedTokens,
      ask: current.ask,
      settings: current.settings,
      calls: callHistories.get(modelKey),
      callsInFlight: activity.inFlight(residentId),
      waiting: waitingFor(modelKey),
      planAt: (tokens) => planOf(decider, worker, proposalAt(tokens, tokens)),
      ...(since === undefined ? {} : { roomSinceMs: since }),
      nowMs,
    });
    if (!verdict.plan || verdict.wantedTokens === undefined) this.#roomSince.delete(residentId);
    else if (since === undefined) this.#roomSince.set(residentId, nowMs);
    if (!verdict.grows || !verdict.plan || verdict.wantedTokens === undefined) return false;
    const to = verdict.plan.contract.contextTokens;
    return decider.propose(worker, proposalAt(to, verdict.wantedTokens)).kind === 'decided';
  }
}
