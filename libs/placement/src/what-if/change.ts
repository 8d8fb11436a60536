import type { DeviceOnWorker, EngineOnWorker } from '#domain/events/worker-events.js';
import { deviceId, type DeviceId, RAM, type WorkerId, workerId } from '#domain/ids.js';
import { formatBytes, GIB, MIB } from '#domain/units.js';
import type { WorkerState } from '#domain/worker/state.js';
import { acceleratorsOf, tierOf } from '../room.js';
import type { SettingsPatch } from '../setting-levels.js';
import { compareText } from '../charges.js';

/** What is to be other than it was. Nothing named: as it was. */
export interface WhatIfChange {
  readonly ramMaxBytes?: number;
  readonly vramMaxBytes?: number;
  /** Cards by id or by a part of their name; one that no worker has is put beside the others. */
  readonly devices?: readonly { readonly name: string; readonly bytes: number }[];
  /** Bytes more on one device of one worker. */
  readonly more?: { readonly workerId: WorkerId; readonly deviceId: DeviceId; readonly bytes: number };
  /** Workers more, each a copy of the first. */
  readonly moreWorkers?: number;
  /** Laid over what was set at every level. */
  readonly settings?: SettingsPatch;
}

/** Why the change cannot be made on these workers, as a sentence; undefined when it can. */
export function whyNotChanged(workers: readonly WorkerState[], change: WhatIfChange): string | undefined {
  if (workers.length === 0) return 'No worker had registered by then.';
  if (change.vramMaxBytes !== undefined && workers.every((w) => acceleratorsOf(w).length === 0))
    return 'No worker had a card whose memory could be limited; name a card to add with --device NAME=24GiB.';
  for (const { name } of change.devices ?? []) {
    const found = workers.flatMap((w) => w.devices.filter((d) => isNamed(d, name)).map((d) => d.name));
    if (found.length > 1)
      return `"${name}" names ${found.length} cards (${found.join(', ')}); use the id of one.`;
  }
  return undefined;
}

/** The workers as they would be. Residents are left as they are. */
export function changedWorkers(
  workers: readonly WorkerState[],
  change: WhatIfChange,
): readonly WorkerState[] {
  const added = (change.devices ?? []).filter(
    ({ name }) => !workers.some((w) => w.devices.some((d) => isNamed(d, name))),
  );
  const changed = workers.map((worker, i) => changedWorker(worker, change, i === 0 ? added : []));
  const [first] = changed;
  if (!first) return changed;
  const copies = Array.from({ length: change.moreWorkers ?? 0 }, (_, i) => copyOf(first, i + 1));
  return [...changed, ...copies];
}

function changedWorker(
  worker: WorkerState,
  change: WhatIfChange,
  added: readonly { readonly name: string; readonly bytes: number }[],
): WorkerState {
  let next = worker;
  if (change.ramMaxBytes !== undefined) next = withRoom(next, RAM, change.ramMaxBytes);
  if (change.vramMaxBytes !== undefined)
    for (const id of acceleratorsOf(next)) next = withRoom(next, id, change.vramMaxBytes);
  for (const { name, bytes } of change.devices ?? [])
    for (const device of worker.devices.filter((d) => isNamed(d, name)))
      next = withRoom(next, device.deviceId, bytes, true);
  const { more } = change;
  if (more?.workerId === worker.workerId) {
    const limit = tierOf(next, more.deviceId)?.limitBytes;
    if (limit !== undefined) next = withRoom(next, more.deviceId, limit + more.bytes);
  }
  for (const { name, bytes } of added) next = withCard(next, name, bytes);
  return next;
}

/** @param exactly the device gets just so much, also when that is less than it has */
function withRoom(worker: WorkerState, id: DeviceId, bytes: number, exactly = false): WorkerState {
  const { designation, setting } = worker.limits;
  const has = tierOf(worker, id)?.capacityBytes ?? 0;
  const grown = exactly || bytes > has;
  const without = (limits: ReadonlyMap<string, number>) =>
    new Map([...limits].filter(([resource]) => resource !== id));
  const limits = {
    designation: grown ? without(designation) : without(designation).set(id, bytes),
    setting: without(setting),
  };
  if (!grown) return { ...worker, limits };
  if (id === RAM) return { ...worker, limits, ramBytes: bytes };
  return {
    ...worker,
    limits,
    devices: worker.devices.map((d) =>
      d.deviceId === id ? { ...d, totalBytes: bytes + (d.driverReservedBytes ?? 0) } : d,
    ),
  };
}

/** A worker without cards gets an engine that can use one with it. */
function withCard(worker: WorkerState, name: string, bytes: number): WorkerState {
  const id = deviceId(name);
  const like = worker.devices.find((d) => d.kind !== 'cpu');
  const canUse = worker.engines.some((e) => e.capabilities.includes('gpu'));
  return {
    ...worker,
    devices: [...worker.devices, { deviceId: id, kind: like?.kind ?? 'cuda', name, totalBytes: bytes }],
    engines: canUse ? worker.engines : [CARD_ENGINE, ...worker.engines],
    foreign: new Map(worker.foreign).set(id, 0),
  };
}

const CARD_ENGINE: EngineOnWorker = {
  kind: 'llama-server',
  version: 'assumed',
  build: 'assumed',
  capabilities: ['chat', 'embedding', 'rerank', 'gpu', 'moe-split', 'tools', 'slots', 'vision'],
};

const copyOf = (worker: WorkerState, nth: number): WorkerState => ({
  ...worker,
  workerId: workerId(`${worker.workerId}-copy-${nth}`),
  name: `${worker.name} (copy ${nth})`,
  residents: new Map(),
  openDecisions: new Map(),
});

/** The worker that a copy was made of. */
export const originalOf = (id: WorkerId): WorkerId => workerId(id.replace(/-copy-\d+$/, ''));

const isNamed = (device: DeviceOnWorker, name: string): boolean =>
  device.kind !== 'cpu' &&
  (device.deviceId === name || device.name.toLowerCase().includes(name.toLowerCase()));

/** The change as a person reads it. */
export function changeText(change: WhatIfChange): string {
  const parts = [
    ...(change.more
      ? [
          `${sizeText(change.more.bytes)} more ${change.more.deviceId === RAM ? 'RAM' : `on ${change.more.deviceId}`}`,
        ]
      : []),
    ...(change.ramMaxBytes === undefined ? [] : [`RAM ${sizeText(change.ramMaxBytes)}`]),
    ...(change.vramMaxBytes === undefined ? [] : [`VRAM ${sizeText(change.vramMaxBytes)}`]),
    ...(change.devices ?? []).map(({ name, bytes }) => `${name} ${sizeText(bytes)}`),
    ...(change.moreWorkers
      ? [`${change.moreWorkers} more worker${change.moreWorkers === 1 ? '' : 's'}`]
      : []),
    ...Object.entries(change.settings ?? {})
      .sort(([a], [b]) => compareText(a, b))
      .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`),
  ];
  return parts.length === 0 ? 'as it was' : parts.join(', ');
}

/** `24 GiB`, `256 MiB`: without places that say nothing. */
export function sizeText(bytes: number): string {
  if (bytes >= GIB && bytes % GIB === 0) return `${bytes / GIB} GiB`;
  if (bytes >= MIB && bytes < GIB && bytes % MIB === 0) return `${bytes / MIB} MiB`;
  return formatBytes(bytes);
}
