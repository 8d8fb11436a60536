import { decisionId, type ModelKey } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { streams } from '#events/streams.js';
import { chargeOf } from '#placement/charges.js';
import { idleTooLong, type IdleVerdict } from '#placement/upkeep/idle.js';
import { newId } from '#runtime/ids.js';
import type { Activity } from '../admission/activity.js';
import type { Decider } from '../admission/decider.js';
import type { TermsByWorker } from '../admission/terms.js';
import type { CallHistories } from '../fleet/call-histories.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Preload } from './preload.js';
import type { Chore } from './upkeep.js';

export interface IdleUnloadOptions {
  readonly fleet: Fleet;
  readonly activity: Activity;
  readonly callHistories: CallHistories;
  readonly terms: TermsByWorker;
  readonly decider: Pick<Decider, 'unload'>;
  readonly preload: Pick<Preload, 'modelsOf'>;
  readonly waitingFor: (model: ModelKey) => number;
  readonly now: () => number;
}

/** Has residents unloaded that were idle for longer than they may be. */
export class IdleUnload implements Chore {
  readonly #o: IdleUnloadOptions;

  constructor(options: IdleUnloadOptions) {
    this.#o = options;
  }

  async look(worker: WorkerState): Promise<void> {
    const { callHistories, fleet } = this.#o;
    for (const resident of worker.residents.values()) {
      if (resident.phase !== 'ready' || resident.leaving) continue;
      const key = resident.modelKey;
      // What the last call said of it may stand only in the log: this api may be younger than that call.
      if (!callHistories.isKnown(key)) await callHistories.refresh([key]);
      if (!this.#verdict(worker, resident)) continue;
      // Another api may have sent a call there a moment ago.
      if (fleet.apis.apis.size > 1) await callHistories.reread(key);
      const verdict = this.#verdict(worker, resident);
      if (verdict) this.#unload(worker, resident, verdict);
    }
  }

  #verdict(worker: WorkerState, resident: Resident): IdleVerdict | undefined {
    const { activity, callHistories, terms, preload, waitingFor, now } = this.#o;
    const { modelKey, residentId } = resident;
    return idleTooLong({
      worker,
      resident,
      settings: terms.settingsOf(worker.workerId, modelKey),
      preloaded: preload.modelsOf(worker.workerId).some((model) => model.modelKey === modelKey),
      calls: callHistories.get(modelKey),
      ...activity.useOf(residentId),
      waiting: waitingFor(modelKey),
      nowMs: now(),
    });
  }

  #unload(worker: WorkerState, resident: Resident, verdict: IdleVerdict): void {
    const { callHistories, now, decider } = this.#o;
    const { modelKey, residentId } = resident;
    const id = decisionId(newId());
    const frees = [...chargeOf(resident).bytes]
      .filter(([, bytes]) => bytes > 0)
      .map(([deviceId, bytes]) => ({ deviceId, bytes }));
    decider.unload(
      worker,
      {
        decisionId: id,
        residentId,
        modelKey,
        ...verdict,
        frees,
        basedOn: [
          { stream: streams.worker(worker.workerId), revision: worker.revision },
          { stream: streams.calls(modelKey), revision: callHistories.get(modelKey).revision },
        ],
        now: new Date(now()).toISOString(),
      },
      verdict.callId ?? id,
    );
  }
}
