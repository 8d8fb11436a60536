import { decisionId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { repins } from '#placement/upkeep/repin.js';
import { newId } from '#runtime/ids.js';
import type { Activity } from '../admission/activity.js';
import type { Decider } from '../admission/decider.js';
import type { TermsByWorker } from '../admission/terms.js';
import type { Chore } from './upkeep.js';

export interface RepinCoresOptions {
  readonly activity: Pick<Activity, 'inFlight'>;
  readonly terms: TermsByWorker;
  readonly decider: Pick<Decider, 'repin'>;
}

/** Gives a resident that serves again cores of its own, where others have claimed those that it had. */
export class RepinCores implements Chore {
  readonly #o: RepinCoresOptions;

  constructor(options: RepinCoresOptions) {
    this.#o = options;
  }

  look(worker: WorkerState): void {
    const { activity, terms, decider } = this.#o;
    const inUse = [...worker.residents.keys()].map(
      (id) => [id, { callsInFlight: activity.inFlight(id) }] as const,
    );
    const [first] = repins({
      worker,
      activity: new Map(inUse),
      isPinned: ({ modelKey }) => Array.isArray(terms.settingsOf(worker.workerId, modelKey).cpuCores),
    });
    // One at a time: the next is looked for in what this one leaves.
    if (first) decider.repin(worker, { ...first, decisionId: decisionId(newId()) });
  }
}
