import { formatBytes, formatSeconds } from '#domain/units.js';
import { wrapped } from '../list-table.js';
import type { DeviceRow, FolderRow, Health, QueueRow, ResidentRow, WorkerRow } from '../client/rows.js';
import { columnsOf, shorten, table } from '../table.js';

export interface StatusView {
  readonly address: string;
  readonly health: Health;
  /** Undefined: the views could not be read, and why. */
  readonly views:
    | {
        readonly workers: readonly WorkerRow[];
        readonly residents: readonly ResidentRow[];
        readonly folders: readonly FolderRow[];
      }
    | string;
  readonly queue: readonly QueueRow[];
  readonly nowMs: number;
  /** Of a line; the terminal's when left out. */
  readonly columns?: number;
}

const BAR = 32;
const LEAST_BAR = 8;
/** Beside a bar stand its figures, which are never cut. */
const BESIDE_BAR = 68;
const barOf = (columns: number): number => Math.max(LEAST_BAR, Math.min(BAR, columns - BESIDE_BAR));

/** Lines for a person, as wide as the terminal, at most 100 columns. */
export function statusText(view: StatusView): string {
  const { address, health, views, queue, nowMs, columns = columnsOf() } = view;
  const parts = [
    [
      `Berth ${health.version ?? ''} at ${address}: ${health.status}`,
      ...(health.degraded ?? []).map((line) => `  ! ${line}`),
    ].join('\n'),
  ];
  if (typeof views === 'string') parts.push(`The views cannot be read: ${views}`);
  else {
    const connected = new Map((health.workers ?? []).map((worker) => [worker.id, worker.connected]));
    for (const worker of views.workers) {
      const folder = views.folders.find(({ workerId }) => workerId === worker.workerId);
      parts.push(workerText(worker, connected.get(worker.workerId), folder, columns));
    }
    if (views.workers.length === 0) parts.push('No worker has registered yet.');
    parts.push(
      views.residents.length === 0
        ? 'No model is loaded.'
        : residentsText(views.residents, views.workers.length > 1, nowMs, columns),
    );
  }
  parts.push(queueText(queue));
  return parts.join('\n\n');
}

function workerText(
  worker: WorkerRow,
  connected: boolean | undefined,
  folder: FolderRow | undefined,
  columns: number,
): string {
  const state = worker.lost ? 'lost' : connected === false ? 'agent not connected' : 'connected';
  const limit = worker.coresLimit === undefined ? '' : ` (limit ${worker.coresLimit})`;
  const cores = worker.physicalCores === undefined ? '' : `, ${worker.physicalCores} cores${limit}`;
  return [
    `worker ${shorten(worker.name ?? worker.workerId, Math.min(40, columns - 52))}: ${state}${cores}`,
    ...worker.devices.flatMap((device) => [
      `  ${deviceText(device, columns)}`,
      `    ${roomText(device, barOf(columns))}`,
    ]),
    ...(folder === undefined ? [] : [wrapped(`  ${folderText(folder)}`, columns)]),
  ].join('\n');
}

/** `disk: models 30.00 GiB, limit 40.00 GiB (admin), free 120.00 GiB, pull up to 10.00 GiB` */
function folderText({ usedBytes, limitBytes, limitTier, freeBytes, roomBytes }: FolderRow): string {
  const by = limitTier === 'setting' ? 'admin' : 'start';
  return [
    `disk: models ${formatBytes(usedBytes)}`,
    limitBytes === undefined ? 'no limit' : `limit ${formatBytes(limitBytes)} (${by})`,
    ...(freeBytes === undefined ? [] : [`free ${formatBytes(freeBytes)}`]),
    ...(roomBytes === undefined ? [] : [`pull up to ${formatBytes(roomBytes)}`]),
  ].join(', ');
}

function deviceText({ deviceId, name, totalBytes, limitBytes }: DeviceRow, columns: number): string {
  return [
    shorten(name ?? deviceId, columns - 50),
    totalBytes === undefined ? 'size unknown' : formatBytes(totalBytes),
    ...(limitBytes === undefined ? [] : [`limit ${formatBytes(limitBytes)}`]),
  ].join(', ');
}

/** `[####~~......] models 1.20 GiB, others 2.00 GiB, room 8.80 GiB` */
export function roomText(
  { totalBytes, foreignBytes, residentBytes, limitBytes }: DeviceRow,
  cellsOfBar = BAR,
): string {
  const models = `models ${formatBytes(residentBytes)}`;
  if (totalBytes === undefined) return `${models}, room unknown`;
  const others = foreignBytes ?? 0;
  const usable = Math.max(0, totalBytes - others);
  const room = Math.max(0, Math.min(usable, limitBytes ?? usable) - residentBytes);
  const cells = (bytes: number) => Math.min(cellsOfBar, Math.round((bytes / totalBytes) * cellsOfBar));
  // What is there at all is seen, however small.
  const own = residentBytes > 0 ? Math.max(1, cells(residentBytes)) : 0;
  const taken = Math.min(cellsOfBar - own, cells(others));
  const bar = `${'#'.repeat(own)}${'~'.repeat(taken)}${'.'.repeat(cellsOfBar - own - taken)}`;
  // Without a reading of what others use there is no room to speak of.
  return foreignBytes === undefined
    ? `[${bar}] ${models}, others not read yet`
    : `[${bar}] ${models}, others ${formatBytes(others)}, room ${formatBytes(room)}`;
}

function residentsText(
  residents: readonly ResidentRow[],
  several: boolean,
  nowMs: number,
  columns: number,
): string {
  const rows = residents.map((resident) => {
    const bytes = resident.memory.reduce((sum, entry) => sum + entry.bytes, 0);
    // A planned figure is no measured one.
    const planned = resident.memory.some(({ basis }) => basis === 'planned') ? '~' : '';
    return [
      shorten(resident.modelKey ?? '?', several ? 28 : 38),
      shorten(resident.artifact ?? '', 10),
      ...(several ? [shorten(resident.workerName ?? resident.workerId, 12)] : []),
      resident.leaving ? 'leaving' : resident.phase,
      String(resident.contextTokens ?? ''),
      String(resident.slots ?? ''),
      resident.memory.length === 0 ? '' : `${planned}${formatBytes(bytes)}`,
      resident.readyAt === undefined
        ? ''
        : formatSeconds(Math.max(0, (nowMs - Date.parse(resident.readyAt)) / 1000)),
    ];
  });
  const first = several ? ['model', 'artifact', 'worker'] : ['model', 'artifact'];
  const numbers = [1, 2, 3].map((n) => first.length + n);
  return table(
    [...first, 'phase', 'context', 'slots', 'memory', 'ready for'],
    rows,
    numbers,
    several ? [2, 1, 0] : [1, 0],
    columns,
  );
}

function queueText(queue: readonly QueueRow[]): string {
  if (queue.length === 0) return 'No call waits.';
  const longest = Math.max(...queue.map(({ waitedSeconds }) => waitedSeconds));
  const byModel = new Map<string, number>();
  for (const { modelKey } of queue) byModel.set(modelKey, (byModel.get(modelKey) ?? 0) + 1);
  const lines = [...byModel].map(([model, count]) => `  ${shorten(model, 60)}: ${count}`);
  const calls = queue.length === 1 ? '1 call waits' : `${queue.length} calls wait`;
  return [`${calls}, the longest for ${formatSeconds(longest)}:`, ...lines].join('\n');
}
