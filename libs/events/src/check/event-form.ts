import {
  type BerthEvent,
  type BerthEventType,
  type CallEvent,
  type CatalogEvent,
  type FleetEvent,
  type HistoryEvent,
  type IdentityEvent,
  type KeyEvent,
  MOST_FOREIGN_PROCESSES,
  MOST_TAIL_BYTES,
  MOST_WORKING_BYTES,
  type ModelEvent,
  type OperatorEvent,
  type PullEvent,
  type ReadingsEvent,
  type Recorded,
  type SettingsEvent,
  type WhatIfEvent,
  type WorkerEvent,
} from '#domain/events/index.js';
import { type Category, categoryOf } from '../catalogue.js';
import type { Check, Report } from './violation.js';

/** What the streams of each category hold: the compiler holds the table below against it. */
interface EventIn extends Record<Category, BerthEvent> {
  worker: WorkerEvent;
  calls: CallEvent;
  history: HistoryEvent;
  catalog: CatalogEvent;
  model: ModelEvent;
  settings: SettingsEvent;
  key: KeyEvent;
  operator: OperatorEvent;
  pull: PullEvent;
  readings: ReadingsEvent;
  fleet: FleetEvent | WhatIfEvent;
  log: IdentityEvent;
}
type CategoryOf<T extends BerthEventType> = {
  [C in Category]: T extends EventIn[C]['type'] ? C : never;
}[Category];

const CATEGORY_OF: { readonly [T in BerthEventType]: CategoryOf<T> } = {
  WorkerRegistered: 'worker',
  CapacityMeasured: 'worker',
  LimitSet: 'worker',
  ForeignUseChanged: 'worker',
  BusyCoresChanged: 'worker',
  WorkerLost: 'worker',
  WorkerReturned: 'worker',
  PlacementDecided: 'worker',
  PlacementRefused: 'worker',
  UnloadDecided: 'worker',
  DecisionClosed: 'worker',
  PinSet: 'worker',
  EvictionStarted: 'worker',
  ResidentEvicted: 'worker',
  EvictionFailed: 'worker',
  LoadStarted: 'worker',
  LoadRestarted: 'worker',
  ResidentReady: 'worker',
  LoadFailed: 'worker',
  ResidentCrashed: 'worker',
  ResidentAdopted: 'worker',
  ResidentFoundGone: 'worker',
  ResidentRemeasured: 'worker',
  ContextGrown: 'worker',
  CoresRepinned: 'worker',
  CallStarted: 'calls',
  CallFinished: 'calls',
  LoadProjected: 'history',
  LoadMeasured: 'history',
  LoadRefusedByEngine: 'history',
  ServingMeasured: 'history',
  ContextProbed: 'history',
  ModelFound: 'catalog',
  ModelChanged: 'catalog',
  ModelGone: 'catalog',
  WeightsHashed: 'catalog',
  LoadClaimed: 'model',
  ApiStarted: 'fleet',
  ApiStopped: 'fleet',
  ApiLost: 'fleet',
  WhatIfSummarised: 'fleet',
  LogCreated: 'log',
  SettingsChanged: 'settings',
  KeyIssued: 'key',
  KeyRevoked: 'key',
  OperatorActionRequested: 'operator',
  OperatorActionStarted: 'operator',
  OperatorActionFinished: 'operator',
  PullRequested: 'pull',
  FilePulled: 'pull',
  PullFinished: 'pull',
  PullRefused: 'pull',
  PullFailed: 'pull',
  DevicesRead: 'readings',
};

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const WRITER = /^(?:(?:api|agent):\S+|projector|cli|test)$/;
const CAMEL = /^[a-z][A-Za-z0-9]*$/;
const KEY = /\bbk_[A-Za-z0-9]+_[A-Za-z0-9_-]{20,}/;

/** Whose values are a person's or another program's own: names and nulls there are none of the catalogue's. */
const FREE = new Set(['patch', 'settings']);
const TIMES = new Set(['now', 'validUntil']);
/** What a retried command names again is derived from the command: version 5, also where it waits among the calls. */
const DERIVED_UUIDS = new Set(['actionId', 'pullId', 'callId']);
const UUID_V5 = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UUIDS = new Set([
  'workerId',
  'residentId',
  'decisionId',
  'callId',
  'apiId',
  'foundBy',
  'actionId',
  'pullId',
]);
/** Numbers that a unit at the end of their name explains; above these a bare number counts something. */
const WHOLE = /(?:^b|B)ytes(?:Out)?$|Tokens$|^tokensHeld$/;
const MEASURED = /(?:Seconds|Ms|PerToken|PerSecond|GBps|Percent|Celsius|Watts|Cores|Ticks)$|^seconds$/;
const COUNTS = new Set(
  (
    'pid port count calls place position revision version slots threads status attempts events exitCode priority ' +
    'cpu cpus core node parameters prompt cached output reasoning allGBps oneCoreGBps byCoresGBps value from to context min max ' +
    'gpuLayers cpuMoeLayers microBatch consideredLeftOut cores blocksByDevice physicalCores keyLength valueLength ' +
    'kvHeads heads embeddingLength expertCount expertUsedCount kvLoraRank ropeDims convKernel innerSize groups stateSize ' +
    'decisions identical leftOut served refused loads failedLoads loadsSaved evictions ratio'
  ).split(' '),
);

/** Of several measures; their unit is in the name that they stand under. */
const STATISTICS = new Set(['mean', 'p50', 'p99']);

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/**
 * The rules that hold for every event of the catalogue: it stands in a stream of its category; bytes and tokens are whole
 * numbers below 2^53, times are UTC with milliseconds, ids are UUIDs; every number says its unit or counts something;
 * what is unknown is left out; it says who wrote it, when, and what it belongs to; nothing in it is longer than it may be,
 * and no key is in it.
 */
export class EventForm implements Check {
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  take(recorded: Recorded<BerthEvent>): void {
    for (const wrong of whatIsWrong(recorded)) this.#report('form', recorded, wrong);
  }

  finish(): void {
    // Each event stands for itself.
  }
}

/** In sentences; nothing for an event as it should be. */
export function* whatIsWrong({ event, id, stream, metadata }: Recorded<BerthEvent>): Generator<string> {
  const { type, data } = event;
  if (categoryOf(stream) !== CATEGORY_OF[type])
    yield `${type} stands in ${stream}, and belongs into a stream of ${CATEGORY_OF[type]}.`;
  if (!UUID.test(id)) yield `The id of ${type}, "${id}", is no UUID.`;
  if (!ISO.test(metadata.at))
    yield `${type} was written at "${metadata.at}", which is no UTC time with milliseconds.`;
  if (!WRITER.test(metadata.by))
    yield `${type} was written by "${metadata.by}", which is no api, agent or person.`;
  if (metadata.$correlationId === '' || metadata.$causationId === '')
    yield `${type} does not say what it belongs to, or what caused it.`;
  if (!Number.isInteger(metadata.schemaVersion) || metadata.schemaVersion < 1)
    yield `${type} has the schema version ${metadata.schemaVersion}.`;
  for (const [name, value] of Object.entries(data)) yield* wrongValue(type, name, name, value);
  yield* tooLong(event);
}

function* wrongValue(type: string, path: string, name: string, value: unknown): Generator<string> {
  // Put into words only where something is wrong: most values of most events are as they should be.
  const says = (): string => `${type}.${path} is ${JSON.stringify(value)}`;
  if (!CAMEL.test(name)) yield `${type}.${path} is no camelCase name.`;
  if (FREE.has(name)) return;
  if (value === null || value === undefined) {
    // A limit that is taken away is known to be none.
    if (!(type === 'LimitSet' && path === 'value')) yield `${says()}; what is unknown is left out.`;
  } else if (typeof value === 'number') {
    yield* wrongNumber(says, name, value);
  } else if (typeof value === 'string') {
    if ((name.endsWith('At') || TIMES.has(name)) && !ISO.test(value))
      yield `${says()}, which is no UTC time with milliseconds.`;
    if (UUIDS.has(name) && !UUID_V7.test(value) && !(DERIVED_UUIDS.has(name) && UUID_V5.test(value)))
      yield `${says()}, which is no UUIDv7.`;
    if (KEY.test(value)) yield `${type}.${path} holds a key.`;
  } else if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) yield* wrongValue(type, `${path}[${at}]`, name, item);
  } else if (typeof value === 'object') {
    for (const [part, item] of Object.entries(value))
      yield* wrongValue(type, `${path}.${part}`, STATISTICS.has(part) ? name : part, item);
  }
}

function* wrongNumber(says: () => string, name: string, value: number): Generator<string> {
  if (WHOLE.test(name)) {
    if (!Number.isSafeInteger(value) || value < 0)
      yield `${says()}; it is a whole number from 0 to below 2^53.`;
  } else if (MEASURED.test(name)) {
    if (!Number.isFinite(value) || (value < 0 && !name.endsWith('Celsius')))
      yield `${says()}; it is no measure.`;
  } else if (!COUNTS.has(name)) {
    yield `${says()}, a number without a unit in its name.`;
  } else if (!Number.isFinite(value)) {
    yield `${says()}; it is no number.`;
  }
}

function* tooLong({ type, data }: BerthEvent): Generator<string> {
  if ((type === 'PlacementDecided' || type === 'PlacementRefused') && bytesOf(data) > MOST_WORKING_BYTES)
    yield `The working of ${type} has ${bytesOf(data)} bytes; it may have ${MOST_WORKING_BYTES}.`;
  if ('logTail' in data && Buffer.byteLength(data.logTail) > MOST_TAIL_BYTES)
    yield `The tail of ${type} has ${Buffer.byteLength(data.logTail)} bytes; it may have ${MOST_TAIL_BYTES}.`;
  if (type === 'ForeignUseChanged' && data.processes.length > MOST_FOREIGN_PROCESSES)
    yield `${type} names ${data.processes.length} processes; it may name ${MOST_FOREIGN_PROCESSES}.`;
}
