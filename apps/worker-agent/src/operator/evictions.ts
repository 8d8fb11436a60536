import type { ResidentId } from '#domain/ids.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import type { Resident } from '#domain/worker/state.js';
import type { Executor } from '../agent/executor.js';
import type { Why } from '../agent/facts.js';
import { heldBytes } from '../agent/freed.js';
import { type ActionEnd, done, failed } from './action-end.js';

type Evictions = Pick<Executor, 'state' | 'evict'>;

/** `1.2 GiB on ram` for what the residents were measured to hold. */
function heldText(residents: readonly Resident[]): string {
  const sums = new Map<string, number>();
  for (const { deviceId, bytes } of residents.flatMap(heldBytes))
    sums.set(deviceId, (sums.get(deviceId) ?? 0) + bytes);
  const parts = [...sums]
    .filter(([, bytes]) => bytes > 0)
    .map(([id, bytes]) => `${formatBytes(bytes)} on ${id}`);
  return parts.length === 0 ? 'nothing that was measured' : parts.join(', ');
}

export async function evictOne(executor: Evictions, id: ResidentId, why: Why): Promise<ActionEnd> {
  const resident = executor.state.residents.get(id);
  if (!resident) return done('It is gone: nothing was left to do.');
  const startedMs = performance.now();
  const refused = await executor.evict(id, why);
  if (refused !== undefined) return failed(refused);
  const took = formatSeconds((performance.now() - startedMs) / 1000);
  return done(`${resident.modelKey} left after ${took}; it held ${heldText([resident])}.`);
}

/** All that serve, at once; what is still loading is left and named. */
export async function evictAll(executor: Evictions, why: Why): Promise<ActionEnd> {
  const all = [...executor.state.residents.values()];
  const ready = all.filter(({ phase }) => phase === 'ready');
  const loading = all.filter(({ phase }) => phase !== 'ready');
  const ends = await Promise.all(
    ready.map(async (resident) => ({ resident, refused: await executor.evict(resident.residentId, why) })),
  );
  const left = ends.filter(({ refused }) => refused === undefined).map(({ resident }) => resident);
  const stayed = ends.flatMap(({ refused }) => refused ?? []);
  const told = [
    left.length === 0 ? 'Nothing was unloaded.' : `${left.length} unloaded; they held ${heldText(left)}.`,
    ...stayed,
    ...loading.map(({ modelKey }) => `${modelKey} is still loading and was left.`),
  ].join(' ');
  return stayed.length > 0 ? failed(told) : done(told);
}
