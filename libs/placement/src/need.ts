import type { Artifact, Attachment } from '#domain/events/catalog-events.js';
import type { Geometry } from '#domain/geometry.js';
import type { PairHistory } from '#domain/history/history.js';
import type { HistoryEventData } from '#domain/events/history-events.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { Basis, NeedTerm, NeedTermName, PlacementClass } from '#domain/placement-terms.js';
import { type BytesByDevice, sumOf } from './charges.js';
import { type HeaderBytes, headerBytes } from './header.js';
import { type Measured, measuredOf, nearestMeasured, type Projected, projectedOf } from './measured.js';
import { processKey, type ProcessFigures } from './process-figures.js';
import { attachmentBytes } from './transformers-folder.js';
import type { OffloadOrder } from './weights.js';

export interface NeedQuestion {
  readonly artifact: Artifact;
  readonly plan: PlacementClass;
  readonly history: PairHistory;
  readonly process: ProcessFigures;
  readonly order: OffloadOrder;
  /** What the engine loads beside the weights. */
  readonly attachments?: readonly Attachment[];
}

/** What a plan takes. Plans are priced far more often than they are told: the terms are made when they are read. */
export interface Need {
  /** Every term with its basis and the event that it came from. */
  readonly terms: readonly NeedTerm[];
  /** Sum by device of all terms that have a figure. */
  readonly bytes: BytesByDevice;
  /** Sum by device of what the header gives exactly and of what was measured: without estimates. */
  readonly exactBytes: BytesByDevice;
  /** Over all devices. */
  readonly weightsBytes: number;
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
  const { artifact, plan, history } = question;
  const same = measuredOf(history, plan);
  if (same) return new Figures(measuredParts(same), false);
  const { geometry } = artifact;
  const nearest = geometry && nearestMeasured(history, plan);
  if (nearest) return new Figures(movedParts(nearest, geometry, question), false);
  const projected = projectedOf(history, plan);
  if (projected) return new Figures(projectedParts(projected, question), false);
  return new Figures(geometry ? headerParts(geometry, question) : unknownParts(plan), true);
}

/** The terms of one device. */
interface Part {
  readonly deviceId: DeviceId;
  /** Of weights, KV cache and state. */
  readonly basis: Basis;
  readonly fromEvent: string | undefined;
  readonly weightsBytes: number | undefined;
  readonly kvBytes: number | undefined;
  readonly stateBytes: number;
  readonly computeBasis: Basis;
  /** Absent where nothing is known of the device. */
  readonly computeBytes: number | undefined;
  readonly process: ProcessPart | undefined;
  /** Projector and adapters by themselves; where an engine measured or projected, they are in its figures. */
  readonly attached?: readonly AttachedPart[];
}

interface AttachedPart {
  readonly name: 'projector' | 'adapter';
  readonly bytes: number;
}

interface ProcessPart {
  readonly bytes: number | undefined;
  readonly basis: Basis;
  readonly fromEvent: string | undefined;
}

class Figures implements Need {
  readonly bytes: BytesByDevice;
  readonly weightsBytes: number;
  readonly unknownOn: ReadonlySet<DeviceId>;
  readonly fromHeader: boolean;
  readonly #parts: readonly Part[];
  #exact: BytesByDevice | undefined;
  #terms: readonly NeedTerm[] | undefined;

  constructor(parts: readonly Part[], fromHeader: boolean) {
    this.#parts = parts;
    this.fromHeader = fromHeader;
    const bytes = new Map<DeviceId, number>();
    let weights = 0;
    let unknownOn: Set<DeviceId> | undefined;
    for (const part of parts) {
      const { deviceId, weightsBytes, kvBytes } = part;
      bytes.set(deviceId, (bytes.get(deviceId) ?? 0) + allOf(part));
      weights += whole(weightsBytes);
      if (weightsBytes === undefined || kvBytes === undefined) (unknownOn ??= new Set()).add(deviceId);
    }
    this.bytes = bytes;
    this.weightsBytes = weights;
    this.unknownOn = unknownOn ?? NO_DEVICES;
  }

  get exactBytes(): BytesByDevice {
    return (this.#exact ??= new Map(this.#parts.map((part) => [part.deviceId, exactOf(part)])));
  }

  get terms(): readonly NeedTerm[] {
    return (this.#terms ??= this.#parts.flatMap(termsOf));
  }
}

const NO_DEVICES: ReadonlySet<DeviceId> = new Set();
const whole = (bytes: number | undefined): number => (bytes === undefined ? 0 : Math.ceil(bytes));

const attachedBytes = ({ attached }: Part): number =>
  attached ? attached.reduce((sum, { bytes }) => sum + whole(bytes), 0) : 0;

const allOf = (p: Part): number =>
  attachedBytes(p) +
  whole(p.weightsBytes) +
  whole(p.kvBytes) +
  whole(p.stateBytes) +
  whole(p.computeBytes) +
  whole(p.process?.bytes);

const isExact = (basis: Basis): boolean => basis === 'header' || basis === 'measured';

function exactOf(p: Part): number {
  let bytes = attachedBytes(p);
  if (isExact(p.basis)) bytes += whole(p.weightsBytes) + whole(p.kvBytes) + whole(p.stateBytes);
  if (isExact(p.computeBasis)) bytes += whole(p.computeBytes);
  if (p.process && isExact(p.process.basis)) bytes += whole(p.process.bytes);
  return bytes;
}

function termsOf(p: Part): readonly NeedTerm[] {
  const { deviceId, basis, fromEvent } = p;
  const terms = [
    term(deviceId, 'weights', p.weightsBytes, basis, fromEvent),
    term(deviceId, 'kv', p.kvBytes, basis, fromEvent),
  ];
  if (p.stateBytes > 0) terms.push(term(deviceId, 'state', p.stateBytes, basis, fromEvent));
  if (p.computeBytes !== undefined)
    terms.push(
      term(
        deviceId,
        'compute',
        p.computeBytes,
        p.computeBasis,
        p.computeBasis === 'estimated' ? undefined : fromEvent,
      ),
    );
  for (const { name, bytes } of p.attached ?? [])
    terms.push(term(deviceId, name, bytes, 'header', undefined));
  if (p.process) terms.push(term(deviceId, 'process', p.process.bytes, p.process.basis, p.process.fromEvent));
  return terms;
}

const term = (
  deviceId: DeviceId,
  name: NeedTermName,
  bytes: number | undefined,
  basis: Basis,
  fromEvent: string | undefined,
): NeedTerm => ({
  deviceId,
  term: name,
  ...(bytes === undefined ? {} : { bytes: Math.ceil(bytes) }),
  basis,
  ...(fromEvent === undefined ? {} : { fromEvent }),
});

const measuredParts = ({ value, eventId }: Measured): readonly Part[] =>
  value.byDevice.map((d) => ({
    deviceId: d.deviceId,
    basis: 'measured',
    fromEvent: eventId,
    weightsBytes: d.weightsBytes,
    kvBytes: d.kvBytes,
    stateBytes: 0,
    computeBasis: 'measured',
    computeBytes: d.computeBytes,
    process: { bytes: measuredProcess(value, d), basis: 'measured', fromEvent: eventId },
  }));

/** In RAM the anonymous memory is charged when it is more than the parts: the rest is the process's own. */
function measuredProcess(
  value: HistoryEventData<'LoadMeasured'>,
  device: HistoryEventData<'LoadMeasured'>['byDevice'][number],
): number {
  const unnamed = device.deviceId === RAM ? Math.max(0, value.hostAnonymousBytes - sumOf(device)) : 0;
  return device.processBytes + unnamed;
}

/** Measured terms plus what the header says the two plans differ by. A device that was not measured has the header's own. */
function movedParts(fact: Measured, geometry: Geometry, question: NeedQuestion): readonly Part[] {
  const { value, eventId } = fact;
  const { plan } = question;
  const now = headerBytes(geometry, plan, question.order);
  const then = headerBytes(geometry, value.class, question.order);
  const part = (deviceId: DeviceId): Part => {
    const measured = value.byDevice.find((d) => d.deviceId === deviceId);
    const to = now.get(deviceId) ?? NOTHING;
    if (!measured) return headerPart(deviceId, to, question);
    const from = then.get(deviceId) ?? NOTHING;
    return {
      deviceId,
      basis: 'measured+header',
      fromEvent: eventId,
      weightsBytes: Math.max(0, measured.weightsBytes + to.weightsBytes - from.weightsBytes),
      kvBytes: Math.max(0, measured.kvBytes + to.kvBytes + to.stateBytes - (from.kvBytes + from.stateBytes)),
      stateBytes: 0,
      computeBasis: 'measured+header',
      computeBytes: Math.max(0, measured.computeBytes + to.computeBytes - from.computeBytes),
      process: { bytes: measuredProcess(value, measured), basis: 'measured+header', fromEvent: eventId },
    };
  };
  return [...plan.devices.map(part), part(RAM)];
}

const NOTHING: HeaderBytes = { weightsBytes: 0, kvBytes: 0, stateBytes: 0, computeBytes: 0 };

const projectedParts = ({ value, eventId }: Projected, question: NeedQuestion): readonly Part[] =>
  value.byDevice.map((d) => ({
    deviceId: d.deviceId,
    basis: 'projected',
    fromEvent: eventId,
    weightsBytes: d.weightsBytes,
    kvBytes: d.kvBytes,
    stateBytes: 0,
    computeBasis: 'projected',
    computeBytes: d.computeBytes,
    process: processPart(
      d.deviceId,
      question,
      d.processBytes > 0 ? { bytes: d.processBytes, basis: 'projected', fromEvent: eventId } : undefined,
    ),
  }));

const UNKNOWN_PROCESS: ProcessPart = { bytes: undefined, basis: 'unknown', fromEvent: undefined };

function processPart(deviceId: DeviceId, question: NeedQuestion, projected?: ProcessPart): ProcessPart {
  const known = question.process.get(processKey(deviceId, question.plan.engineBuild));
  if (known) return { bytes: known.bytes, basis: 'measured', fromEvent: known.eventId };
  return projected ?? UNKNOWN_PROCESS;
}

function headerParts(geometry: Geometry, question: NeedQuestion): readonly Part[] {
  const parts: Part[] = [];
  for (const [deviceId, bytes] of headerBytes(geometry, question.plan, question.order))
    parts.push(headerPart(deviceId, bytes, question));
  return withAttachments(parts, question);
}

/** They lie on the first card of the plan, where its layers are; without a card in RAM. */
function withAttachments(parts: readonly Part[], { plan, attachments = [] }: NeedQuestion): readonly Part[] {
  if (attachments.length === 0) return parts;
  const at = (plan.gpuLayers === 0 ? undefined : plan.devices[0]) ?? RAM;
  const attached = attachments.map((a) => ({ name: a.role, bytes: attachmentBytes(a) }));
  return parts.map((part) => (part.deviceId === at ? { ...part, attached } : part));
}

const headerPart = (deviceId: DeviceId, bytes: HeaderBytes, question: NeedQuestion): Part => ({
  deviceId,
  basis: 'header',
  fromEvent: undefined,
  weightsBytes: bytes.weightsBytes,
  kvBytes: bytes.kvBytes,
  stateBytes: bytes.stateBytes,
  computeBasis: 'estimated',
  computeBytes: bytes.computeBytes,
  process: processPart(deviceId, question),
});

/** Without a header nothing is known but the files' size, and that is no figure of memory. */
const unknownParts = (plan: PlacementClass): readonly Part[] =>
  (plan.devices.length > 0 ? plan.devices : [RAM]).map((deviceId) => ({
    deviceId,
    basis: 'unknown',
    fromEvent: undefined,
    weightsBytes: undefined,
    kvBytes: undefined,
    stateBytes: 0,
    computeBasis: 'unknown',
    computeBytes: undefined,
    process: undefined,
  }));
