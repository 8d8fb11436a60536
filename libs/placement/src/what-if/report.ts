import type { WhatIfLeast as Least, WhatIfReport } from '#domain/wire/what-if.js';
import { type DeviceId, RAM, type WorkerId } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import { tierOf } from '../room.js';
import { changeText, sizeText, type WhatIfChange } from './change.js';
import type { Figures } from './figures.js';
import { contested } from './least.js';
import type { Reproduced } from './reproduce.js';
import type { LoggedCalls } from './run.js';
import type { TimeOfLog } from './time-of-log.js';

const MOST_DIFFERENCES = 100;
/** Sizes in which memory is bought. */
const STEPS_GIB = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512] as const;
const SMALL_STEP_BYTES = 128 * MIB;

/** Shares of the device that are tried as more of it, in turn, until one saves what is worth the money. */
export const MORE_SHARES = [0.5, 1, 2, 4] as const;
/** Of the loads. */
export const WORTH_SHARE = 0.1;

/** So much more of the device on which most was evicted; undefined when nobody was. */
export function moreOf(
  time: TimeOfLog,
  share: number = MORE_SHARES[0],
): NonNullable<WhatIfChange['more']> | undefined {
  const [most] = [...contested(time)].sort(([, a], [, b]) => b - a);
  if (!most) return undefined;
  const [deviceId] = most;
  const worker = workerWith(time, deviceId);
  const limit = worker && tierOf(worker.state, deviceId)?.limitBytes;
  if (!worker || limit === undefined) return undefined;
  return { workerId: worker.id, deviceId, bytes: nearStep(limit * share) };
}

function workerWith(time: TimeOfLog, deviceId: DeviceId) {
  // RAM is on every worker: the one on which somebody was evicted there.
  const id: WorkerId | undefined = time.decisions.find(
    ({ data }) =>
      'victims' in data &&
      data.victims.some((v) => v.frees.some((f) => f.deviceId === deviceId && f.bytes > 0)),
  )?.workerId;
  const state = time.end.workers.find((w) => w.workerId === id);
  return id !== undefined && state ? { id, state } : undefined;
}

function nearStep(bytes: number): number {
  if (bytes < GIB) return Math.max(1, Math.round(bytes / SMALL_STEP_BYTES)) * SMALL_STEP_BYTES;
  const near = (a: number, b: number): number =>
    Math.abs(b * GIB - bytes) < Math.abs(a * GIB - bytes) ? b : a;
  return STEPS_GIB.reduce<number>(near, STEPS_GIB[0]) * GIB;
}

export interface ReportParts {
  readonly time: TimeOfLog;
  readonly logged: LoggedCalls;
  readonly reproduced: Reproduced;
  readonly really: Figures;
  readonly asItWas: Figures;
  readonly changes: readonly { readonly change: WhatIfChange; readonly figures: Figures }[];
  readonly least: Omit<Least, 'ratio'>;
}

export function reportOf(parts: ReportParts): WhatIfReport {
  const { time, logged, reproduced, really, asItWas } = parts;
  const least = withRatio(parts.least, really);
  const changes = parts.changes.map(({ change, figures }) => ({
    name: changeText(change),
    figures,
    loadsSaved: asItWas.loads === 0 ? 0 : 1 - figures.loads / asItWas.loads,
  }));
  const more = parts.changes.find(({ change }) => change.more);
  return {
    from: new Date(time.fromMs).toISOString(),
    to: new Date(time.toMs).toISOString(),
    calls: logged.calls.length,
    leftOut: logged.leftOut,
    reproduced: {
      decisions: reproduced.decisions,
      identical: reproduced.identical,
      differences: reproduced.differences.slice(0, MOST_DIFFERENCES),
    },
    really,
    asItWas,
    changes,
    least,
    sentence: sentenceOf(really, asItWas, least, more),
    notes: notesOf(parts),
  };
}

function withRatio(least: Omit<Least, 'ratio'>, { usualLoadSeconds }: Figures): Least {
  const { atOnceSeconds, delayedSeconds } = least;
  // Whoever let calls wait may be below what serving each at once takes; then that is no bound of it.
  const bound =
    atOnceSeconds !== undefined && atOnceSeconds <= usualLoadSeconds * 1.001 ? atOnceSeconds : delayedSeconds;
  return bound === undefined || bound <= 0 ? least : { ...least, ratio: usualLoadSeconds / bound };
}

const percent = (share: number): string => `${Math.round(100 * share)} %`;

function sentenceOf(
  really: Figures,
  asItWas: Figures,
  { ratio, notComputed }: Least,
  more: ReportParts['changes'][number] | undefined,
): string {
  if (really.calls === 0) return 'No call that needs a place was logged in this time.';
  const loaded =
    really.loads === 0
      ? 'Nothing had to be loaded'
      : ratio !== undefined
        ? ratio < 1.05
          ? 'You were at the least loading possible'
          : `You were at ${ratio.toFixed(1)} × the least loading possible`
        : `You loaded ${really.loads} times; the least possible was not computed${notComputed === undefined ? '' : ` (${notComputed})`}`;
  if (!more?.change.more)
    return `${loaded}; nobody was evicted, so that more memory would have saved nothing.`;
  const { bytes, deviceId } = more.change.more;
  const size = `${sizeText(bytes)} more${deviceId === RAM ? ' RAM' : ''}`;
  const saved = asItWas.loads - more.figures.loads;
  if (saved <= 0) return `${loaded}; ${size} would have saved no load.`;
  return `${loaded}; ${size} would have saved ${percent(saved / asItWas.loads)} of the loads.`;
}

const canUseNoCard = ({ end }: TimeOfLog): boolean =>
  end.workers.every(({ engines }) => !engines.some(({ capabilities }) => capabilities.includes('gpu')));

function notesOf({ time, reproduced, changes }: ReportParts): readonly string[] {
  const added = changes.some(({ change }) => (change.devices ?? []).length > 0);
  return [
    'A call takes what it really took; on another placement that by the ratio of the estimated rates.',
    'A load takes what loads of its class took, else of its artifact, else an estimate from its size.',
    'A call is served by a resident of its model whatever context that has, and no load fails.',
    ...(time.settingsChanged > 0
      ? [`Settings changed ${time.settingsChanged} times; they are taken as they were at the beginning.`]
      : []),
    ...(added ? ['A card that was not there is as fast as its memory rate says, else slow.'] : []),
    ...(added && canUseNoCard(time)
      ? ["No engine there can use a card: llama-server is assumed, with sizes from the file's header."]
      : []),
    ...(reproduced.differences.length > 0
      ? [`${reproduced.differences.length} decisions differ from those logged; see the list.`]
      : []),
  ];
}
