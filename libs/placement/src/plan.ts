import type { Considered } from '#domain/events/worker-events.js';
import type { DeviceId } from '#domain/ids.js';
import { type Contract, type PlacementClass, sameList } from '#domain/placement-terms.js';
import type { Writable } from '#domain/writable.js';
import type { Amounts } from './amounts.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import type { Remembered } from './failures.js';
import { offloadOrderOf } from './engine-choice.js';
import type { Shape } from './ladder.js';
import { loadSeconds } from './loss.js';
import { lastMeasured } from './measured.js';
import type { Need } from './need.js';
import { outputSeconds, pricedOutputTokens, ratesOfClass } from './predict.js';
import type { Snapshot } from './snapshot.js';
import { estimatedSecondsPerToken } from './speed.js';

/** Output tokens that an estimate is priced at when neither the call nor the history says. */
const GUESSED_OUTPUT_TOKENS = 256;

/** A shape with its context, need and prediction: what could be decided. */
export interface Plan {
  readonly shape: Shape;
  readonly contract: Contract;
  /** As in the contract. */
  readonly threads: number;
  readonly klass: PlacementClass;
  readonly need: Need;
  /** Bytes that must fit: without estimates while the engine can still be asked. */
  readonly asked: Amounts;
  /** The engine has not been asked about this class yet. */
  readonly projectable: boolean;
}

const NO_PROMPT = { promptTokens: 0 };

export interface Forecast {
  readonly readyInSeconds: number;
  readonly loadSeconds: number;
  readonly outputSeconds?: number;
  readonly estimated: boolean;
}

export interface Displaced {
  readonly count: number;
  readonly lossSeconds: number;
}

export type Verdict =
  | {
      readonly kind: 'admitted';
      readonly plan: Plan;
      readonly victims: readonly EvictionCandidate[];
      readonly exact: boolean;
      readonly forecast: Forecast;
      readonly reason: string;
      /** This very plan did not come up the last time; the room has changed since. */
      readonly failedBefore?: boolean;
    }
  /** It would fit if others ended, left or became idle. */
  | {
      readonly kind: 'blocked';
      readonly plan?: Plan;
      readonly shape: Shape;
      readonly reason: string;
      readonly freeInSeconds?: number | undefined;
      /** Whom it would displace by then, at most. */
      readonly displaces?: Displaced | undefined;
    }
  /** It failed before and is not tried again yet. */
  | { readonly kind: 'failed'; readonly plan: Plan; readonly shape: Shape; readonly remembered: Remembered }
  /** It amounts to another rung, which is looked at by itself. */
  | { readonly kind: 'same'; readonly plan?: Plan; readonly shape: Shape; readonly reason: string }
  /** It can never fit this worker as it is. */
  | {
      readonly kind: 'never';
      readonly plan?: Plan;
      readonly shape: Shape;
      readonly reason: string;
      readonly code: 'model_cannot_fit' | 'context_length_exceeded' | 'incompatible_engine';
    };

/** Predicted seconds of a plan: from this model's measured rates, else from the memory rates of where it lies. */
export function forecastOf(snapshot: Snapshot, plan: Plan, readyInSeconds: number): Forecast {
  const { input, rates } = snapshot;
  const load = loadSeconds(input.history, plan.klass, plan.need.weightsBytes);
  const own = ratesOfClass(input.history, plan.klass, rates);
  const measured =
    own || ratesBelongTo(snapshot, plan) ? outputSeconds(own ?? rates, input.ticket ?? NO_PROMPT) : undefined;
  if (measured !== undefined) {
    const estimated = load.basis === 'estimated';
    return { readyInSeconds, loadSeconds: load.seconds, outputSeconds: measured, estimated };
  }
  const { shape, klass } = plan;
  const geometry = shape.artifact.geometry;
  const perToken =
    geometry &&
    estimatedSecondsPerToken(input.worker, geometry, klass, plan.threads, offloadOrderOf(shape.engine));
  const tokens = pricedOutputTokens(rates, input.ticket?.maxTokens) ?? GUESSED_OUTPUT_TOKENS;
  const { seconds } = load;
  return perToken === undefined
    ? { readyInSeconds, loadSeconds: seconds, estimated: true }
    : { readyInSeconds, loadSeconds: seconds, outputSeconds: perToken * tokens, estimated: true };
}

/**
 * A model's calls are measured where it ran: their rates say nothing of another kind of place. The last measured load
 * tells which kind that was.
 */
function ratesBelongTo(snapshot: Snapshot, plan: Plan): boolean {
  if (snapshot.accelerators.length === 0) return true;
  const last = lastMeasured(snapshot.input.history);
  return last !== undefined && isSamePlace(last.value.class, plan.klass);
}

type Place = Pick<PlacementClass, 'devices' | 'gpuLayers' | 'cpuMoeLayers'>;

const isSamePlace = (a: Place, b: Place): boolean =>
  a.gpuLayers === b.gpuLayers && a.cpuMoeLayers === b.cpuMoeLayers && sameList(a.devices, b.devices);

/** T: predicted seconds to the end of the output; undefined when the output is unknown. */
export const totalSeconds = (forecast: Forecast): number | undefined =>
  forecast.outputSeconds === undefined
    ? undefined
    : forecast.readyInSeconds + forecast.loadSeconds + forecast.outputSeconds;

const REASON_CHARACTERS = 300;

export const clip = (text: string): string =>
  text.length <= REASON_CHARACTERS ? text : `${text.slice(0, REASON_CHARACTERS - 1)}…`;

const OUTCOMES = {
  admitted: 'admitted',
  blocked: 'refused',
  failed: 'refused',
  never: 'refused',
  same: 'not-offered',
} as const;

export const shapeOf = (verdict: Verdict): Shape =>
  verdict.kind === 'admitted' ? verdict.plan.shape : verdict.shape;

export const reasonOf = (verdict: Verdict): string =>
  verdict.kind === 'failed' ? verdict.remembered.reason : verdict.reason;

/** The line that a verdict leaves in the working. */
export function consideredOf(snapshot: Snapshot, verdict: Verdict, chosen: boolean): Considered {
  const { plan } = verdict;
  const shape = shapeOf(verdict);
  const outcome = chosen ? 'chosen' : OUTCOMES[verdict.kind];
  const reason = clip(reasonOf(verdict));
  const line: Writable<Considered> = { artifact: shape.artifact.label, rung: shape.rung, outcome, reason };
  if (shape.devices.length > 0) line.devices = shape.devices;
  if (plan) {
    line.contextTokens = plan.klass.contextTokens;
    line.kvType = plan.klass.kvType;
    line.needBytes = plan.asked.total;
    const roomBytes = roomSum(snapshot, plan);
    if (roomBytes !== undefined) line.roomBytes = roomBytes;
  }
  const seconds = verdict.kind === 'admitted' ? totalSeconds(verdict.forecast) : undefined;
  if (seconds !== undefined) line.predictedSeconds = Math.round(seconds * 1000) / 1000;
  return line;
}

function roomSum(snapshot: Snapshot, plan: Plan): number | undefined {
  let sum = 0;
  for (const deviceId of plan.asked.devices) {
    const bytes = snapshot.rooms.get(deviceId)?.roomBytes;
    if (bytes === undefined) return undefined;
    sum += bytes;
  }
  return sum;
}

/** Devices that a plan takes something of, or may. */
export const devicesOf = ({ asked, need }: Plan): readonly DeviceId[] =>
  need.unknownOn.size === 0 ? asked.devices : [...new Set([...asked.devices, ...need.unknownOn])];
