import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RAM } from '#domain/ids.js';
import { formatBytes } from '#domain/units.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { encroachment, roomOf } from '#placement/room.js';
import { chargesOf } from '#placement/charges.js';
import { markedProcesses } from '../../apps/worker-agent/src/engines/engine-family.js';
import { FOREIGN_STEP_BYTES } from '../../apps/worker-agent/src/hardware/foreign-use.js';
import { anonymousBytes, readMemory } from '../../apps/worker-agent/src/hardware/memory.js';

/** Residents together may differ by one step from what they were measured to hold: what wobbles within it is no event. */
const RESIDENTS_WITHIN_BYTES = FOREIGN_STEP_BYTES;
/** What others hold is charged at the upper edge of its step, and comes down when it is more than a step below. */
const FOREIGN_WITHIN_BYTES = 2 * FOREIGN_STEP_BYTES;

/** What the operating system says of an engine's processes, whoever forked them. */
interface Held {
  readonly anonymousBytes: number;
  readonly mappedBytes: number;
}

/** Of a process that ended since it was listed nothing is mapped. */
function mappedWeights(pid: number): number {
  try {
    const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
    return [...maps.matchAll(/^([\da-f]+)-([\da-f]+) .*\.gguf(?: \(deleted\))?$/gm)].reduce(
      (sum, [, from = '', to = '']) => sum + parseInt(to, 16) - parseInt(from, 16),
      0,
    );
  } catch {
    return 0;
  }
}

function heldByResident(home: string): ReadonlyMap<string, Held> {
  const held = new Map<string, Held>();
  for (const { pid, residentId } of markedProcesses(join(home, 'engines'))) {
    const before = held.get(residentId) ?? { anonymousBytes: 0, mappedBytes: 0 };
    held.set(residentId, {
      anonymousBytes: before.anonymousBytes + (anonymousBytes(pid) ?? 0),
      mappedBytes: before.mappedBytes + mappedWeights(pid),
    });
  }
  return held;
}

/** What the engine said that it took: of a buffer that was not written to yet the system gives nothing, and must be able to. */
function allocatedBytes({ measured }: Resident): number {
  const ram = measured?.byDevice.find(({ deviceId }) => deviceId === RAM);
  return ram === undefined ? 0 : ram.weightsBytes + ram.kvBytes + ram.computeBytes;
}

/**
 * Holds the room of a machine's RAM, as the log's fold gives it to every decision, against what the operating system says:
 * each resident is a process that holds what it is charged with, no other process is an engine, what is left is what others
 * are charged with, and the room is what remains of the limit.
 * @returns in sentences what is not so; nothing when the log and the machine agree.
 */
export function roomDifferences(state: WorkerState, home: string): readonly string[] {
  const wrong: string[] = [];
  const held = heldByResident(home);
  const charges = chargesOf(state);
  let [chargedBytes, least, most] = [0, 0, 0];
  for (const resident of state.residents.values()) {
    if (resident.phase !== 'ready') wrong.push(`${resident.modelKey} is ${resident.phase}.`);
    chargedBytes += charges.get(resident.residentId)?.bytes.get(RAM) ?? 0;
    const its = held.get(resident.residentId) ?? { anonymousBytes: 0, mappedBytes: 0 };
    if (!held.has(resident.residentId)) wrong.push(`${resident.modelKey} is a resident without a process.`);
    least += its.anonymousBytes;
    most += Math.max(its.anonymousBytes + its.mappedBytes, allocatedBytes(resident));
  }
  for (const [residentId, { anonymousBytes: bytes }] of held)
    if (![...state.residents.keys()].some((id) => id === residentId))
      wrong.push(`A process holds ${formatBytes(bytes)} for ${residentId}, which is no resident.`);
  const between = (what: string, bytes: number, low: number, high: number): void => {
    if (bytes >= low && bytes <= high) return;
    wrong.push(`${what}: ${formatBytes(bytes)}, measured ${formatBytes(low)} to ${formatBytes(high)}.`);
  };
  between('Residents', chargedBytes, least - RESIDENTS_WITHIN_BYTES, most + RESIDENTS_WITHIN_BYTES);
  const { usedBytes } = readMemory();
  const allHeld = [...held.values()].reduce((sum, its) => sum + its.anonymousBytes, 0);
  const foreignBytes = Math.max(0, usedBytes - allHeld);
  const room = roomOf(state, RAM);
  between('Foreign use', room.foreignBytes ?? NaN, foreignBytes, foreignBytes + FOREIGN_WITHIN_BYTES);
  const { limitBytes = NaN, capacityBytes = NaN } = room;
  const left = (residents: number, foreign: number): number =>
    Math.max(0, limitBytes - residents - encroachment({ capacityBytes, limitBytes, foreignBytes: foreign }));
  between(
    'Room',
    room.roomBytes ?? NaN,
    left(most + RESIDENTS_WITHIN_BYTES, foreignBytes + FOREIGN_WITHIN_BYTES),
    left(Math.max(0, least - RESIDENTS_WITHIN_BYTES), foreignBytes),
  );
  return wrong;
}
