import type { WorkerState } from '#domain/worker/state.js';
import type { Fleet } from '../../fleet/fleet.js';
import { fail } from '../problem/fail.js';

/** Workers that a command may be for. */
export const registeredIn = (fleet: Pick<Fleet, 'workers'>): readonly WorkerState[] =>
  [...fleet.workers.values()].filter(({ registered }) => registered);

export const calledBy = (workers: readonly WorkerState[], idOrName: string): readonly WorkerState[] =>
  workers.filter((w) => w.workerId === idOrName || w.name === idOrName);

export const namesOf = (workers: readonly WorkerState[]): string =>
  workers.map((w) => `${w.name} (${w.workerId})`).join(', ');

export const refuseUnconnected = (name: string): never =>
  fail(
    'worker_unavailable',
    `The agent of ${name} is not connected. Start it with \`berth up\` there, and ask again.`,
  );
