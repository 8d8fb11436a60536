import type { CallId, ModelKey } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { p99TokensHeld } from '#placement/context.js';
import { noOptions } from '#placement/model-name.js';
import { probesLeft } from '#placement/upkeep/probe.js';
import type { Activity } from '../admission/activity.js';
import type { Decider } from '../admission/decider.js';
import type { TermsByWorker } from '../admission/terms.js';
import type { CallHistories } from '../fleet/call-histories.js';
import type { Fleet } from '../fleet/fleet.js';
import { trainedOf, withContext } from './own-plan.js';
import type { Chore } from './upkeep.js';

export interface ProbeContextsOptions {
  readonly fleet: Fleet;
  readonly activity: Activity;
  readonly callHistories: CallHistories;
  readonly terms: TermsByWorker;
  readonly decider: Pick<Decider, 'propose'>;
  /** Calls that wait, for whatever model. */
  readonly waiting: () => number;
}

/** What one call has probed: each context at most once, whatever comes of it. */
interface Job {
  readonly callId: CallId;
  readonly resident: Resident;
  readonly tried: Set<number>;
}

/** After a call that grades, tries or warms up a model, loads it with the contexts of which nothing is known yet. */
export class ProbeContexts implements Chore {
  readonly #o: ProbeContextsOptions;
  readonly #jobs = new Map<string, Job>();

  constructor(options: ProbeContextsOptions) {
    this.#o = options;
  }

  look(worker: WorkerState): void {
    const { callHistories, waiting } = this.#o;
    for (const resident of worker.residents.values()) {
      const probing = callHistories.get(resident.modelKey).probing;
      const id = `${worker.workerId}~${resident.modelKey}`;
      if (!probing || this.#jobs.get(id)?.callId === probing.callId || resident.phase !== 'ready') continue;
      this.#jobs.set(id, { callId: probing.callId, resident, tried: new Set() });
    }
    if (waiting() > 0 || worker.openDecisions.size > 0) return;
    for (const [id, job] of this.#jobs) {
      if (id !== `${worker.workerId}~${job.resident.modelKey}`) continue;
      if (!this.#isIdle(worker, job.resident.modelKey)) continue;
      if (this.#probe(worker, job)) return;
    }
  }

  #isIdle(worker: WorkerState, key: ModelKey): boolean {
    const { activity } = this.#o;
    return [...worker.residents.values()].every(
      (r) =>
        r.modelKey !== key || (r.phase === 'ready' && !r.leaving && activity.inFlight(r.residentId) === 0),
    );
  }

  /** @returns true when something was begun, or is asked for. */
  #probe(worker: WorkerState, job: Job): boolean {
    const { fleet, terms, callHistories } = this.#o;
    const { resident, tried } = job;
    const model = fleet.modelOn(worker.workerId, resident.modelKey);
    const trainedTokens = trainedOf(model, resident);
    if (!model || trainedTokens === undefined || resident.kind !== 'chat') return false;
    const p99Tokens = p99TokensHeld(callHistories.get(resident.modelKey).finished);
    const left = probesLeft({
      resident,
      trainedTokens,
      history: fleet.history(worker.workerId, resident.modelKey),
      ...(p99Tokens === undefined ? {} : { p99Tokens }),
    });
    const current = terms.of({ model, options: noOptions }, worker.workerId);
    for (const { contextTokens } of left) {
      if (tried.has(contextTokens)) continue;
      const outcome = this.#o.decider.propose(
        worker,
        withContext(resident, model, current, contextTokens, { kind: 'probe', contextTokens }),
      );
      if (outcome.kind === 'project' || outcome.kind === 'deciding' || outcome.kind === 'held') return true;
      // What has no room now is not waited for: the next such call looks again.
      tried.add(contextTokens);
      if (outcome.kind === 'decided') return true;
    }
    return false;
  }
}
