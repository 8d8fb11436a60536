import type { Geometry } from '#domain/geometry.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { NeedTerm } from '#domain/placement-terms.js';
import { Amounts } from './amounts.js';
import {
  COMPUTE,
  figureOf,
  type HeaderPrices,
  headerPrices,
  type HeaderTable,
  KV,
  STATE,
  WEIGHTS,
} from './header.js';
import type { Measured } from './measured.js';
import { memo } from './memo.js';
import type { Need, NeedQuestion } from './need-question.js';
import {
  allOf,
  attachedOn,
  byDeviceOf,
  exactOf,
  headerParts,
  measuredProcess,
  movedParts,
  NOTHING,
  type Part,
  placeOfAttachments,
  pricedThen,
  termsOf,
  whole,
} from './need-parts.js';

const NO_DEVICES: ReadonlySet<DeviceId> = new Set();

/** What the parts of a plan say together. */
export class PartFigures implements Need {
  readonly bytes: Amounts;
  readonly weightsBytes: number;
  readonly unknownOn: ReadonlySet<DeviceId>;
  readonly fromHeader: boolean;
  readonly #parts: readonly Part[];

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
    this.bytes = new Amounts([...bytes.keys()], [...bytes.values()]);
    this.weightsBytes = weights;
    this.unknownOn = unknownOn ?? NO_DEVICES;
  }

  get exactBytes(): Amounts {
    return exactOf(this.#parts);
  }

  get terms(): readonly NeedTerm[] {
    return this.#parts.flatMap(termsOf);
  }
}

/**
 * By arithmetic from the header. A decision prices a hundred plans and tells a few: sums are made straight from the
 * table of figures, and the parts that they are sums of when they are told.
 */
export class HeaderFigures implements Need {
  readonly unknownOn = NO_DEVICES;
  readonly fromHeader = true;
  readonly #geometry: Geometry;
  readonly #question: NeedQuestion;
  readonly #prices: HeaderPrices;

  constructor(geometry: Geometry, question: NeedQuestion) {
    this.#geometry = geometry;
    this.#question = question;
    this.#prices = headerPrices(geometry, question.plan);
  }

  get bytes(): Amounts {
    return this.#sums(false);
  }

  get exactBytes(): Amounts {
    return this.#sums(true);
  }

  get weightsBytes(): number {
    const { plan, order } = this.#question;
    const table = this.#prices.all(plan, order);
    let bytes = 0;
    for (let row = 0; row <= plan.devices.length; row++) bytes += whole(figureOf(table, row, WEIGHTS));
    return bytes;
  }

  get terms(): readonly NeedTerm[] {
    return headerParts(this.#geometry, this.#question).flatMap(termsOf);
  }

  #sums(exact: boolean): Amounts {
    const { plan, process, order, attachments } = this.#question;
    const table = this.#prices.all(plan, order);
    const places = ramFirst(plan.devices);
    const attachedAt = placeOfAttachments(plan, plan.devices);
    const bytes = places.map((deviceId, row) =>
      priceOfRow(
        table,
        row,
        exact,
        process.of(deviceId, plan.engineBuild)?.bytes,
        deviceId === attachedAt ? attachedOn(attachments) : 0,
      ),
    );
    return new Amounts(places, bytes);
  }
}

const ramFirst = memo((devices: readonly DeviceId[]): readonly DeviceId[] => [RAM, ...devices]);
const ramLast = memo((devices: readonly DeviceId[]): readonly DeviceId[] => [...devices, RAM]);

const exactOfRow = (table: HeaderTable, row: number, process: number): number =>
  whole(figureOf(table, row, WEIGHTS)) +
  whole(figureOf(table, row, KV)) +
  whole(figureOf(table, row, STATE)) +
  process;

const sumOfRow = (table: HeaderTable, row: number, process: number): number =>
  exactOfRow(table, row, process) + whole(figureOf(table, row, COMPUTE));

/**
 * What one device is charged by the header: without estimates where an engine can still be asked.
 * @param processBytes of the engine itself: measured or unknown, never an estimate
 */
export function priceOfRow(
  table: HeaderTable,
  row: number,
  exact: boolean,
  processBytes: number | undefined,
  attachedBytes: number,
): number {
  const process = whole(processBytes);
  return (exact ? exactOfRow(table, row, process) : sumOfRow(table, row, process)) + attachedBytes;
}

/** Measured of another class, and moved by what the header says the two plans differ by. */
export class MovedFigures implements Need {
  readonly bytes: Amounts;
  readonly weightsBytes: number;
  readonly unknownOn = NO_DEVICES;
  readonly fromHeader = false;
  readonly #fact: Measured;
  readonly #geometry: Geometry;
  readonly #question: NeedQuestion;

  constructor(fact: Measured, geometry: Geometry, question: NeedQuestion) {
    this.#fact = fact;
    this.#geometry = geometry;
    this.#question = question;
    const { plan, order } = question;
    const then = pricedThen(fact, geometry, order);
    const now = headerPrices(geometry, plan).all(plan, order);
    const bytes: number[] = [];
    let weights = 0;
    for (let row = 1; row <= plan.devices.length + 1; row++) {
      // RAM is told last.
      const at = row > plan.devices.length ? 0 : row;
      const moved = this.#moved(then, now, at);
      bytes.push(moved.all);
      weights += moved.weights;
    }
    this.bytes = new Amounts(ramLast(plan.devices), bytes);
    this.weightsBytes = weights;
  }

  #moved(
    then: ReturnType<typeof pricedThen>,
    now: HeaderTable,
    row: number,
  ): { readonly weights: number; readonly all: number } {
    const { value } = this.#fact;
    const { plan, process } = this.#question;
    const deviceId = plan.devices[row - 1] ?? RAM;
    const measured = byDeviceOf(value, deviceId);
    if (!measured)
      return {
        weights: whole(figureOf(now, row, WEIGHTS)),
        all: sumOfRow(now, row, whole(process.of(deviceId, plan.engineBuild)?.bytes)),
      };
    const from = then.get(deviceId) ?? NOTHING;
    const weights = whole(
      Math.max(0, measured.weightsBytes + figureOf(now, row, WEIGHTS) - from.weightsBytes),
    );
    const cache = figureOf(now, row, KV) + figureOf(now, row, STATE) - (from.kvBytes + from.stateBytes);
    const compute = measured.computeBytes + figureOf(now, row, COMPUTE) - from.computeBytes;
    const all =
      weights +
      whole(Math.max(0, measured.kvBytes + cache)) +
      whole(Math.max(0, compute)) +
      whole(measuredProcess(value, measured));
    return { weights, all };
  }

  get exactBytes(): Amounts {
    return exactOf(movedParts(this.#fact, this.#geometry, this.#question));
  }

  get terms(): readonly NeedTerm[] {
    return movedParts(this.#fact, this.#geometry, this.#question).flatMap(termsOf);
  }
}
