import type { Recorded, WorkerEvent } from '#domain/events/index.js';
import type { WorkerId } from '#domain/ids.js';
import type { StateAt } from '#domain/wire/index.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { deviceItems, residentItem } from '../../live/fold/resident-items.js';

/** A state is kept this often along a stream, so that scrolling back and forth reads little. */
const KEPT_EVERY = 1000;
const MOST_KEPT = 200;

/** Where to stop: after a position of the log, or after a time. */
export type Moment = { readonly position: bigint } | { readonly timeMs: number };

interface Folded {
  readonly state: WorkerState;
  readonly last: Pick<Recorded<WorkerEvent>, 'position' | 'metadata'> | undefined;
}

/** What stood at any moment of the past: the workers' streams folded up to it, with states kept along the way. */
export class PastStates {
  readonly #log: Pick<EventLog, 'readForwards'>;
  readonly #kept = new Map<WorkerId, Folded[]>();

  constructor(log: Pick<EventLog, 'readForwards'>) {
    this.#log = log;
  }

  async at(workers: Iterable<WorkerId>, moment: Moment): Promise<StateAt> {
    const folded: Folded[] = [];
    for (const id of workers) folded.push(await this.#worker(id, moment));
    const last = folded
      .flatMap((f) => f.last ?? [])
      .sort((a, b) => (a.position.commit < b.position.commit ? 1 : -1))[0];
    const states = folded.map((f) => f.state).filter((state) => state.revision >= 0);
    return {
      ...(last ? { position: last.position.commit.toString(), at: last.metadata.at } : {}),
      devices: states.flatMap(deviceItems),
      residents: states.flatMap((s) => [...s.residents.values()].map((r) => residentItem(s, r))),
      openDecisions: states.flatMap((s) =>
        [...s.openDecisions.values()].map(({ decisionId, data }) => ({
          decisionId,
          modelKey: data.modelKey,
        })),
      ),
    };
  }

  async #worker(id: WorkerId, moment: Moment): Promise<Folded> {
    const kept = this.#kept.get(id) ?? [];
    this.#kept.set(id, kept);
    let folded = kept.findLast(({ last }) => last !== undefined && isWithin(last, moment)) ?? {
      state: initialWorker(id),
      last: undefined,
    };
    const fromRevision = folded.state.revision + 1;
    for await (const recorded of this.#log.readForwards<WorkerEvent>(streams.worker(id), { fromRevision })) {
      if (!isWithin(recorded, moment)) break;
      folded = { state: evolveWorker(folded.state, recorded), last: recorded };
      if ((recorded.revision + 1) % KEPT_EVERY === 0) keep(kept, folded);
    }
    return folded;
  }
}

const isWithin = (event: Pick<Recorded<WorkerEvent>, 'position' | 'metadata'>, moment: Moment): boolean =>
  'position' in moment
    ? event.position.commit <= moment.position
    : Date.parse(event.metadata.at) <= moment.timeMs;

/** In their order; once there are many, every second one goes. */
function keep(kept: Folded[], folded: Folded): void {
  if ((kept.at(-1)?.state.revision ?? -1) >= folded.state.revision) return;
  kept.push(folded);
  if (kept.length > MOST_KEPT) kept.splice(0, kept.length, ...kept.filter((_, n) => n % 2 === 1));
}
