import type { CallItem, DeviceItem, EvictionItem, ResidentItem } from '#domain/wire/index.js';
import { bytesOn } from '../live/device-bar.js';

/** A stretch of time, in milliseconds since the epoch. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A resident's life within the window; places are parts of the window's width, 0 to 1. */
export interface Life {
  readonly residentId: string;
  readonly decisionId?: string;
  readonly from: number;
  /** Where it became ready; undefined when it never did, or does not yet. */
  readonly readyAt?: number;
  readonly to: number;
  /** It lives on at the window's end. */
  readonly goesOn: boolean;
  readonly bytes: number;
  readonly end?: { readonly kind: 'evicted' | 'broken' | 'gone'; readonly word: string };
  readonly sentence: string;
}

/** One model on one device: its lives, and the calls that it served meanwhile. */
export interface Lane {
  readonly modelKey: string;
  readonly lives: readonly Life[];
  readonly calls: readonly { readonly at: number; readonly failed: boolean }[];
}

export interface DeviceLanes {
  readonly workerId: string;
  readonly deviceId: string;
  readonly workerName: string;
  readonly name?: string;
  readonly lanes: readonly Lane[];
}

export interface Happened {
  readonly residents: readonly ResidentItem[];
  readonly calls: readonly CallItem[];
  readonly evictions: readonly EvictionItem[];
  readonly devices: readonly DeviceItem[];
}

const place = (ms: number, { fromMs, toMs }: Window): number => (ms - fromMs) / (toMs - fromMs);
const within = (at: number): number => Math.min(1, Math.max(0, at));

/** What happened in a window, by device and model, in the order of first appearance. A device without any keeps its heading. */
export function lanesOf(happened: Happened, window: Window): readonly DeviceLanes[] {
  const lives = happened.residents.flatMap((resident) => lifeOf(resident, happened, window));
  return happened.devices.map((device) => {
    const here = lives.filter(
      ({ resident }) =>
        resident.workerId === device.workerId && resident.memory.some((f) => f.deviceId === device.deviceId),
    );
    const keys = [...new Set(here.map(({ resident }) => resident.modelKey ?? ''))].sort();
    return {
      workerId: device.workerId,
      deviceId: device.deviceId,
      workerName: device.workerName,
      ...(device.name === undefined ? {} : { name: device.name }),
      lanes: keys.map((modelKey) => ({
        modelKey,
        lives: here
          .filter(({ resident }) => resident.modelKey === modelKey)
          .map(({ resident, life }) => ({ ...life, bytes: bytesOn(resident, device.deviceId) }))
          .sort((a, b) => a.from - b.from),
        calls: callsOf(happened.calls, modelKey, device.workerId, window),
      })),
    };
  });
}

function callsOf(
  calls: readonly CallItem[],
  modelKey: string,
  workerId: string,
  window: Window,
): Lane['calls'] {
  return calls
    .filter(
      (call) => call.modelKey === modelKey && (call.workerId === undefined || call.workerId === workerId),
    )
    .map((call) => ({
      at: place(Date.parse(call.receivedAt), window),
      failed: call.state === 'failed' || call.state === 'refused',
    }))
    .filter(({ at }) => at >= 0 && at <= 1);
}

function lifeOf(
  resident: ResidentItem,
  { evictions }: Happened,
  window: Window,
): readonly { resident: ResidentItem; life: Omit<Life, 'bytes'> }[] {
  const began = resident.loadStartedAt ?? resident.decidedAt;
  if (began === undefined) return [];
  const from = place(Date.parse(began), window);
  const to = resident.endedAt === undefined ? Infinity : place(Date.parse(resident.endedAt), window);
  if (from > 1 || to < 0) return [];
  const ready = resident.readyAt === undefined ? undefined : place(Date.parse(resident.readyAt), window);
  const end = to <= 1 ? endOf(resident, evictions) : undefined;
  const life = {
    residentId: resident.residentId,
    ...(resident.decisionId === undefined ? {} : { decisionId: resident.decisionId }),
    from: within(from),
    ...(ready === undefined || ready > 1 ? {} : { readyAt: within(ready) }),
    to: within(to),
    goesOn: to > 1,
    ...(end ? { end } : {}),
    sentence: sentenceOf(resident, end),
  };
  return [{ resident, life }];
}

function endOf({ residentId, endReason }: ResidentItem, evictions: readonly EvictionItem[]): Life['end'] {
  const eviction = evictions.find((each) => each.residentId === residentId && each.state === 'done');
  if (endReason === 'evicted' || eviction) {
    return { kind: 'evicted', word: eviction ? `evicted (${eviction.reason})` : 'evicted' };
  }
  if (endReason === 'crashed') return { kind: 'broken', word: 'crashed' };
  if (endReason === 'load-failed') return { kind: 'broken', word: 'load failed' };
  return { kind: 'gone', word: endReason ?? 'gone' };
}

function sentenceOf(resident: ResidentItem, end: Life['end']): string {
  const loaded =
    resident.readyAt === undefined || resident.loadStartedAt === undefined
      ? 'not ready'
      : `loaded in ${((Date.parse(resident.readyAt) - Date.parse(resident.loadStartedAt)) / 1000).toFixed(1)} s`;
  return `${resident.modelKey ?? 'unknown model'}: ${loaded}${end ? `, ${end.word}` : ''}`;
}

/** What is ticked on the axis: round times that are at least so far apart. */
export function ticksOf(
  window: Window,
  most: number,
): readonly { readonly at: number; readonly ms: number }[] {
  const MINUTE = 60_000;
  const steps = [1, 5, 15, 60, 180, 360, 720, 1440, 2880, 10_080].map((minutes) => minutes * MINUTE);
  const span = window.toMs - window.fromMs;
  const step = steps.find((each) => span / each <= most) ?? span;
  const zone = new Date(window.fromMs).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((window.fromMs - zone) / step) * step + zone;
  const ticks: { at: number; ms: number }[] = [];
  for (let ms = first; ms <= window.toMs; ms += step) ticks.push({ at: place(ms, window), ms });
  return ticks;
}
