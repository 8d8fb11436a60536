import type { HistoryEventData } from '#domain/events/history-events.js';
import type { Geometry } from '#domain/geometry.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import {
  type Basis,
  type NeedTerm,
  type NeedTermName,
  type PlacementClass,
  sumOf,
} from '#domain/placement-terms.js';
import { Amounts } from './amounts.js';
import { type HeaderBytes, headerBytes } from './header.js';
import type { Measured, Projected } from './measured.js';
import { memo } from './memo.js';
import type { NeedQuestion } from './need-question.js';
import { attachmentBytes } from './transformers-folder.js';
import type { OffloadOrder } from './weights.js';

/** The terms of one device. */
export interface Part {
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

export const whole = (bytes: number | undefined): number => (bytes === undefined ? 0 : Math.ceil(bytes));

const attachedBytes = ({ attached }: Part): number =>
  attached ? attached.reduce((sum, { bytes }) => sum + whole(bytes), 0) : 0;

export const allOf = (p: Part): number =>
  attachedBytes(p) +
  whole(p.weightsBytes) +
  whole(p.kvBytes) +
  whole(p.stateBytes) +
  whole(p.computeBytes) +
  whole(p.process?.bytes);

const isExact = (basis: Basis): boolean => basis === 'header' || basis === 'measured';

export const exactOf = (parts: readonly Part[]): Amounts =>
  new Amounts(
    parts.map((part) => part.deviceId),
    parts.map(exactOfPart),
  );

function exactOfPart(p: Part): number {
  let bytes = attachedBytes(p);
  if (isExact(p.basis)) bytes += whole(p.weightsBytes) + whole(p.kvBytes) + whole(p.stateBytes);
  if (isExact(p.computeBasis)) bytes += whole(p.computeBytes);
  if (p.process && isExact(p.process.basis)) bytes += whole(p.process.bytes);
  return bytes;
}

export function termsOf(p: Part): readonly NeedTerm[] {
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

/** @param cacheGrows by how much the cache of a full context is larger than it was right after the load */
export const measuredParts = ({ value, eventId }: Measured, cacheGrows = 1): readonly Part[] =>
  value.byDevice.map((d) => ({
    deviceId: d.deviceId,
    basis: 'measured',
    fromEvent: eventId,
    weightsBytes: d.weightsBytes,
    kvBytes: d.kvBytes * cacheGrows,
    stateBytes: 0,
    computeBasis: 'measured',
    computeBytes: d.computeBytes,
    process: { bytes: measuredProcess(value, d), basis: 'measured', fromEvent: eventId },
  }));

/** In RAM the anonymous memory is charged when it is more than the parts: the rest is the process's own. */
export function measuredProcess(
  value: HistoryEventData<'LoadMeasured'>,
  device: HistoryEventData<'LoadMeasured'>['byDevice'][number],
): number {
  const unnamed = device.deviceId === RAM ? Math.max(0, value.hostAnonymousBytes - sumOf(device)) : 0;
  return device.processBytes + unnamed;
}

/** Measured terms plus what the header says the two plans differ by. A device that was not measured has the header's own. */
export function movedParts(fact: Measured, geometry: Geometry, question: NeedQuestion): readonly Part[] {
  const { value, eventId } = fact;
  const { plan } = question;
  const now = headerBytes(geometry, plan, question.order);
  const then = pricedThen(fact, geometry, question.order);
  const part = (deviceId: DeviceId): Part => {
    const measured = byDeviceOf(value, deviceId);
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

export function byDeviceOf(
  { byDevice }: Measured['value'],
  deviceId: DeviceId,
): Measured['value']['byDevice'][number] | undefined {
  for (const device of byDevice) if (device.deviceId === deviceId) return device;
  return undefined;
}

interface PricedThen {
  readonly geometry: Geometry;
  readonly order: OffloadOrder;
  readonly bytes: ReadonlyMap<DeviceId, HeaderBytes>;
}

const lastPricedThen = memo((_: Measured): { of?: PricedThen } => ({}));

/** What the header says of the class that was measured; every plan that is moved from it asks. */
export function pricedThen(fact: Measured, geometry: Geometry, order: OffloadOrder): PricedThen['bytes'] {
  const last = lastPricedThen(fact);
  if (last.of?.geometry === geometry && last.of.order === order) return last.of.bytes;
  const bytes = headerBytes(geometry, fact.value.class, order);
  last.of = { geometry, order, bytes };
  return bytes;
}

export const NOTHING: HeaderBytes = { weightsBytes: 0, kvBytes: 0, stateBytes: 0, computeBytes: 0 };

export const projectedParts = ({ value, eventId }: Projected, question: NeedQuestion): readonly Part[] =>
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
  const known = question.process.of(deviceId, question.plan.engineBuild);
  if (known) return { bytes: known.bytes, basis: 'measured', fromEvent: known.eventId };
  return projected ?? UNKNOWN_PROCESS;
}

export function headerParts(geometry: Geometry, question: NeedQuestion): readonly Part[] {
  const parts: Part[] = [];
  for (const [deviceId, bytes] of headerBytes(geometry, question.plan, question.order))
    parts.push(headerPart(deviceId, bytes, question));
  return withAttachments(parts, question);
}

/** They lie on the first card of the plan, where its layers are; without a card in RAM. */
export const placeOfAttachments = (
  { gpuLayers }: { readonly gpuLayers: number },
  devices: readonly DeviceId[],
): DeviceId => (gpuLayers === 0 ? undefined : devices[0]) ?? RAM;

export function attachedOn(attachments: NeedQuestion['attachments']): number {
  let bytes = 0;
  if (attachments) for (const attachment of attachments) bytes += whole(attachmentBytes(attachment));
  return bytes;
}

function withAttachments(parts: readonly Part[], question: NeedQuestion): readonly Part[] {
  const { attachments = [] } = question;
  if (attachments.length === 0) return parts;
  const at = placeOfAttachments(question.plan, question.plan.devices);
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
export const unknownParts = (plan: PlacementClass): readonly Part[] =>
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
