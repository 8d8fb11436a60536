import type { ResidentId, WorkerId } from '#domain/ids.js';
import type { Activity } from '../admission/activity.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AgentSessions } from './sessions.js';

/** A resident counts as serving for this long after its last call: calls that follow one another are one use of it. */
const QUIET_MS = 500;

/**
 * Tells agents which of their residents serve: what an engine was doing when it died, and which cores it holds, is not to
 * be seen from its process. Said at the first call and once it has been quiet, never per call.
 */
export class Servings {
  readonly #activity: Pick<Activity, 'inFlight'>;
  readonly #fleet: Pick<Fleet, 'resident' | 'worker'>;
  readonly #sessions: Pick<AgentSessions, 'sayServing'>;
  readonly #onServes: () => void;
  /** Those that were said to serve, with the timer of their end once they are quiet. */
  readonly #serving = new Map<ResidentId, NodeJS.Timeout | undefined>();

  constructor(
    activity: Pick<Activity, 'inFlight' | 'onChange'>,
    fleet: Pick<Fleet, 'resident' | 'worker'>,
    sessions: Pick<AgentSessions, 'sayServing' | 'listen'>,
    /** A resident serves again after it was quiet. */
    onServes: () => void = () => undefined,
  ) {
    this.#onServes = onServes;
    this.#activity = activity;
    this.#fleet = fleet;
    this.#sessions = sessions;
    activity.onChange((id, inFlight) => this.#changed(id, inFlight));
    sessions.listen({
      onConnected: (worker) => {
        for (const id of this.#serving.keys()) {
          if (this.#fleet.worker(worker)?.residents.has(id)) this.#sessions.sayServing(worker, id, true);
        }
      },
    });
  }

  close(): void {
    for (const timer of this.#serving.values()) clearTimeout(timer);
    this.#serving.clear();
  }

  #changed(id: ResidentId, inFlight: number): void {
    if (inFlight > 0) {
      if (this.#serving.has(id)) return;
      this.#serving.set(id, undefined);
      this.#say(id, true);
      this.#onServes();
    } else if (this.#serving.has(id) && this.#serving.get(id) === undefined) {
      this.#quietIn(id, QUIET_MS);
    }
  }

  /** One timer per resident, however many calls come and go: it looks at its end whether there was quiet. */
  #quietIn(id: ResidentId, ms: number): void {
    const timer = setTimeout(() => {
      if (this.#activity.inFlight(id) > 0) {
        this.#serving.set(id, undefined);
        return;
      }
      this.#serving.delete(id);
      this.#say(id, false);
    }, ms);
    timer.unref();
    this.#serving.set(id, timer);
  }

  #say(id: ResidentId, serves: boolean): void {
    const placed: { readonly workerId: WorkerId } | undefined = this.#fleet.resident(id);
    if (placed) this.#sessions.sayServing(placed.workerId, id, serves);
  }
}
