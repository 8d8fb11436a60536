import type { ResidentId } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { boundTo, claimsCores, coresOf, pickCpus } from '../cores.js';

export interface RepinQuestion {
  readonly worker: WorkerState;
  /** Calls under way, by resident. */
  readonly activity: ReadonlyMap<ResidentId, { readonly callsInFlight: number }>;
  /** Whose cores are pinned by a list: they stay, whoever else is on them. */
  readonly isPinned: (resident: Resident) => boolean;
}

export interface Repin {
  readonly residentId: ResidentId;
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly cause: string;
}

/**
 * Residents that serve again on cores which were claimed while they were idle: each is bound to as many free ones, so that
 * claims of weights in RAM are disjoint. Where there are not as many, it shares; threads without a core would only spin.
 */
export function repins(question: RepinQuestion): readonly Repin[] {
  const { worker, activity } = question;
  const claims = [...worker.residents.values()]
    .filter((resident) => !resident.leaving && claimsCores(resident, activity))
    .flatMap((resident) => {
      const bound = boundTo(resident);
      return bound ? [{ resident, bound }] : [];
    });
  const held = new Set<number>();
  const moved: Repin[] = [];
  // What loads or is pinned stays; of those that serve, the one that came last has claimed what was free.
  const inOrder = claims.sort(
    (a, b) =>
      weight(question, a.resident) - weight(question, b.resident) ||
      (a.resident.decidedAt < b.resident.decidedAt ? 1 : -1),
  );
  for (const { resident, bound } of inOrder) {
    const shared = bound.some((cpu) => held.has(cpu));
    const to =
      shared && weight(question, resident) === 1 ? freeFor(question, resident, bound, held) : undefined;
    for (const cpu of to ?? bound) held.add(cpu);
    if (to === undefined) continue;
    const cause = 'its cores were claimed while it was idle';
    moved.push({ residentId: resident.residentId, from: bound, to, cause });
  }
  return moved;
}

/** As many as it has, of those that nobody else loads or serves on; undefined when there are not as many. */
function freeFor(
  { worker, activity }: RepinQuestion,
  { residentId }: Resident,
  bound: readonly number[],
  taken: ReadonlySet<number>,
): readonly number[] | undefined {
  const { cpus } = coresOf(worker, activity, residentId);
  const free = cpus?.free.filter((cpu) => !taken.has(cpu)) ?? [];
  return cpus && free.length >= bound.length
    ? pickCpus({ usable: cpus.usable, free }, bound.length)
    : undefined;
}

const weight = ({ isPinned }: RepinQuestion, resident: Resident): number =>
  resident.phase !== 'ready' || isPinned(resident) ? 0 : 1;
