import type { Artifact } from '#domain/events/catalog-events.js';
import type { Geometry } from '#domain/geometry.js';
import type { Fact, PairHistory } from '#domain/history/history.js';
import type { HistoryEventData } from '#domain/events/history-events.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import {
  type Basis,
  classKey,
  type Contract,
  engineBuildOf,
  type NeedTerm,
  type NeedTermName,
  type PlacementClass,
  placementClassOf,
} from '#domain/placement-terms.js';
import { type BytesByDevice, compareText, sumOf, termsByDevice, unknownDevices } from './charges.js';
import { type HeaderBytes, headerBytes } from './header.js';
import type { OffloadOrder } from './weights.js';

type Measured = Fact<HistoryEventData<'LoadMeasured'>>;
type Projected = Fact<HistoryEventData<'LoadProjected'>>;

/** What a process takes on a device by itself. */
export interface ProcessFigure {
  readonly bytes: number;
  readonly eventId: string;
  readonly at: string;
}

/** The process figure that was measured last with any model, by `processKey`. */
export interface ProcessFigures {
  get(key: string): ProcessFigure | undefined;
}

export const processKey = (deviceId: DeviceId, engineBuild: string): string => `${deviceId}|${engineBuild}`;

/** The latest process figure of each device and engine build over all models of a worker, gathered when first asked. */
export function processFigures(histories: Iterable<PairHistory>): ProcessFigures {
  let gathered: Map<string, ProcessFigure> | undefined;
  return {
    get: (key) => (gathered ??= gather(histories)).get(key),
  };
}

function gather(histories: Iterable<PairHistory>): Map<string, ProcessFigure> {
  const latest = new Map<string, ProcessFigure>();
  for (const history of histories) {
    for (const [key, figure] of figuresOf(history)) {
      const before = latest.get(key);
      if (!before || isLater(figure, before)) latest.set(key, figure);
    }
  }
  return latest;
}

const figures = new WeakMap<PairHistory, ReadonlyMap<string, ProcessFigure>>();

/** Those of one model; kept as long as the history that they were read from. */
function figuresOf(history: PairHistory): ReadonlyMap<string, ProcessFigure> {
  const known = figures.get(history);
  if (known) return known;
  const made = new Map<string, ProcessFigure>();
  for (const { value, eventId, at } of history.measured.values()) {
    for (const device of value.byDevice) {
      const key = processKey(device.deviceId, value.class.engineBuild);
      const figure = { bytes: device.processBytes, eventId, at };
      const before = made.get(key);
      if (!before || isLater(figure, before)) made.set(key, figure);
    }
  }
  figures.set(history, made);
  return made;
}

const isLater = (a: ProcessFigure, b: ProcessFigure): boolean =>
  a.at > b.at || (a.at === b.at && a.eventId > b.eventId);

export interface NeedQuestion {
  readonly artifact: Artifact;
  readonly contract: Contract;
  readonly history: PairHistory;
  readonly process: ProcessFigures;
  readonly order: OffloadOrder;
}

export interface Need {
  readonly terms: readonly NeedTerm[];
  readonly bytes: BytesByDevice;
  /** Devices on which weights or KV are unknown. */
  readonly unknownOn: ReadonlySet<DeviceId>;
  /** Neither measured nor projected: an engine could still say more. */
  readonly fromHeader: boolean;
}

/**
 * What a plan takes, per device, each term with its basis and the event that it came from. Order of belief: measured
 * for this class; measured for another class of the artifact, moved by the header's difference; projected; header.
 */
export function needOf(question: NeedQuestion): Need {
  const { artifact, contract, history } = question;
  const plan = placementClassOf(artifact.label, contract);
  const same = history.measured.get(classKey(plan));
  if (same) return needFrom(measuredTerms(same), false);
  const nearest = nearestMeasured(history, plan);
  const geometry = artifact.geometry;
  if (nearest && geometry) return needFrom(movedTerms(nearest, geometry, question), false);
  const projected = history.projected.get(classKey(plan));
  if (projected) return needFrom(projectedTerms(projected, question), false);
  return needFrom(geometry ? headerTerms(geometry, question) : unknownTerms(contract), true);
}

const needFrom = (terms: readonly NeedTerm[], fromHeader: boolean): Need => ({
  terms,
  bytes: termsByDevice(terms),
  unknownOn: unknownDevices(terms),
  fromHeader,
});

const term = (
  deviceId: DeviceId,
  name: NeedTermName,
  bytes: number | undefined,
  basis: Basis,
  fromEvent?: string,
): NeedTerm => ({
  deviceId,
  term: name,
  ...(bytes === undefined ? {} : { bytes: Math.ceil(bytes) }),
  basis,
  ...(fromEvent === undefined ? {} : { fromEvent }),
});

function measuredTerms({ value, eventId }: Measured): readonly NeedTerm[] {
  return value.byDevice.flatMap((d) => [
    term(d.deviceId, 'weights', d.weightsBytes, 'measured', eventId),
    term(d.deviceId, 'kv', d.kvBytes, 'measured', eventId),
    term(d.deviceId, 'compute', d.computeBytes, 'measured', eventId),
    term(d.deviceId, 'process', measuredProcess(value, d.deviceId), 'measured', eventId),
  ]);
}

/** In RAM the anonymous memory is charged when it is more than the parts: the rest is the process's own. */
function measuredProcess(value: HistoryEventData<'LoadMeasured'>, deviceId: DeviceId): number {
  const device = value.byDevice.find((d) => d.deviceId === deviceId);
  if (!device) return 0;
  const unnamed = deviceId === RAM ? Math.max(0, value.hostAnonymousBytes - sumOf(device)) : 0;
  return device.processBytes + unnamed;
}

/**
 * The measurement to move from: the class that differs least (same devices, engine, layers, KV type, then the nearest
 * context), the latest of equals.
 */
function nearestMeasured(history: PairHistory, plan: PlacementClass): Measured | undefined {
  let best: Measured | undefined;
  let bestScore = Infinity;
  for (const fact of history.measured.values()) {
    const other = fact.value.class;
    if (other.artifact !== plan.artifact) continue;
    const score =
      (other.devices.join() === plan.devices.join() ? 0 : 32) +
      (other.engineBuild === plan.engineBuild ? 0 : 16) +
      (other.gpuLayers === plan.gpuLayers && other.cpuMoeLayers === plan.cpuMoeLayers ? 0 : 8) +
      (other.flashAttention === plan.flashAttention && other.microBatch === plan.microBatch ? 0 : 4) +
      (other.kvType === plan.kvType && other.slots === plan.slots ? 0 : 2) +
      Math.abs(other.contextTokens - plan.contextTokens) / (other.contextTokens + plan.contextTokens + 1);
    const later =
      best !== undefined &&
      score === bestScore &&
      (fact.at > best.at || (fact.at === best.at && compareText(fact.eventId, best.eventId) > 0));
    if (score < bestScore || later) {
      best = fact;
      bestScore = score;
    }
  }
  return best;
}

/** Measured terms plus what the header says the two plans differ by. A device that was not measured has the header's own. */
function movedTerms(fact: Measured, geometry: Geometry, question: NeedQuestion): readonly NeedTerm[] {
  const { value, eventId } = fact;
  const plan = placementClassOf(question.artifact.label, question.contract);
  const now = headerBytes(geometry, plan, question.order);
  const then = headerBytes(geometry, value.class, question.order);
  const devices = [...new Set([...plan.devices, RAM])];
  return devices.flatMap((deviceId) => {
    const measured = value.byDevice.find((d) => d.deviceId === deviceId);
    const to = now.get(deviceId) ?? NOTHING;
    if (!measured) return ownHeaderTerms(deviceId, to, question);
    const from = then.get(deviceId) ?? NOTHING;
    const move = (bytes: number, a: number, b: number): number => Math.max(0, bytes + b - a);
    const moved = (name: NeedTermName, bytes: number): NeedTerm =>
      term(deviceId, name, bytes, 'measured+header', eventId);
    return [
      moved('weights', move(measured.weightsBytes, from.weightsBytes, to.weightsBytes)),
      moved('kv', move(measured.kvBytes, from.kvBytes + from.stateBytes, to.kvBytes + to.stateBytes)),
      moved('compute', move(measured.computeBytes, from.computeBytes, to.computeBytes)),
      moved('process', measuredProcess(value, deviceId)),
    ];
  });
}

const NOTHING: HeaderBytes = { weightsBytes: 0, kvBytes: 0, stateBytes: 0, computeBytes: 0 };

function projectedTerms({ value, eventId }: Projected, question: NeedQuestion): readonly NeedTerm[] {
  return value.byDevice.flatMap((d) => [
    term(d.deviceId, 'weights', d.weightsBytes, 'projected', eventId),
    term(d.deviceId, 'kv', d.kvBytes, 'projected', eventId),
    term(d.deviceId, 'compute', d.computeBytes, 'projected', eventId),
    processTerm(d.deviceId, question, d.processBytes > 0 ? { bytes: d.processBytes, eventId } : undefined),
  ]);
}

function processTerm(
  deviceId: DeviceId,
  question: NeedQuestion,
  projected?: { readonly bytes: number; readonly eventId: string },
): NeedTerm {
  const known = question.process.get(processKey(deviceId, engineBuildOf(question.contract.engine)));
  if (known) return term(deviceId, 'process', known.bytes, 'measured', known.eventId);
  if (projected) return term(deviceId, 'process', projected.bytes, 'projected', projected.eventId);
  return term(deviceId, 'process', undefined, 'unknown');
}

function headerTerms(geometry: Geometry, question: NeedQuestion): readonly NeedTerm[] {
  const plan = placementClassOf(question.artifact.label, question.contract);
  const header = headerBytes(geometry, plan, question.order);
  return [...header].flatMap(([deviceId, bytes]) => ownHeaderTerms(deviceId, bytes, question));
}

function ownHeaderTerms(deviceId: DeviceId, bytes: HeaderBytes, question: NeedQuestion): readonly NeedTerm[] {
  return [
    term(deviceId, 'weights', bytes.weightsBytes, 'header'),
    term(deviceId, 'kv', bytes.kvBytes, 'header'),
    ...(bytes.stateBytes > 0 ? [term(deviceId, 'state', bytes.stateBytes, 'header')] : []),
    term(deviceId, 'compute', bytes.computeBytes, 'estimated'),
    processTerm(deviceId, question),
  ];
}

/** Without a header nothing is known but the files' size, and that is no figure of memory. */
const unknownTerms = (contract: Contract): readonly NeedTerm[] =>
  (contract.devices.length > 0 ? contract.devices : [RAM]).flatMap((deviceId) => [
    term(deviceId, 'weights', undefined, 'unknown'),
    term(deviceId, 'kv', undefined, 'unknown'),
  ]);
