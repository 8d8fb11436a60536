import type { Recorded } from '#domain/events/envelope.js';
import type { BerthEvent } from '#domain/events/index.js';
import type { PlacementDecidedData, PlacementRefusedData } from '#domain/events/worker-events.js';
import { type ModelKey, residentId, type ResidentId, workerId, type WorkerId } from '#domain/ids.js';
import { compareText } from '../charges.js';
import type {
  PlacementInput,
  PlacementOutcome,
  ResidentActivity,
  ResidentPolicy,
  Ticket,
} from '../contract.js';
import { decide } from '../decide.js';
import { defaultSettings, effectiveSettings, type LevelPatches } from '../setting-levels.js';
import type { EffectiveSettings } from '../settings.js';
import { POLICY_VERSION } from '../working.js';
import type { WhatIfDifference as Difference } from '#domain/wire/what-if.js';
import type { BasedOn, FoldedLog } from './folded-log.js';
import { promptEstimate, type SeenCalls } from './seen-calls.js';
import { NOTHING_PROJECTS } from '../unprojectable.js';

type Taken = PlacementDecidedData | PlacementRefusedData;

/** A decision of the log, with everything but calls that it was made from, as the streams had it. */
export interface CapturedDecision {
  readonly workerId: WorkerId;
  readonly at: string;
  readonly nowMs: number;
  readonly data: Taken;
  /** Without the facts of calls, which reach the log later; undefined where the log does not hold what was read. */
  readonly read:
    Pick<PlacementInput, 'worker' | 'model' | 'history' | 'otherHistories' | 'residentPolicies'> | undefined;
  readonly levels: LevelPatches;
  /** Why it cannot be made again, where that is known already. */
  readonly missing?: string;
}

export interface Reproduced {
  readonly decisions: number;
  readonly identical: number;
  /** In the order of the log. */
  readonly differences: readonly Difference[];
}

/** @returns what is to be made again; undefined for an event that is no decision. Folds nothing. */
export function captureDecision(
  log: FoldedLog,
  { event, stream, metadata }: Recorded<BerthEvent>,
): CapturedDecision | undefined {
  if (event.type !== 'PlacementDecided' && event.type !== 'PlacementRefused') return undefined;
  const { data } = event;
  const id = workerId(stream.slice('worker-'.length));
  const basedOn: BasedOn = new Map(data.basedOn.map((b) => [b.stream, b.revision]));
  const key = data.modelKey;
  const worker = log.worker(id, basedOn);
  const model = log.modelOn(id, key, basedOn);
  const levels = log.levels(id, key, basedOn);
  const base = { workerId: id, at: metadata.at, nowMs: Date.parse(data.now), data, levels };
  if (!worker || !model) {
    const missing = worker
      ? `the catalogue at its revision has no ${key}`
      : 'the state it was based on is too far back';
    return { ...base, read: undefined, missing };
  }
  const policies = new Map<ModelKey, ResidentPolicy>();
  for (const { modelKey } of worker.residents.values()) {
    const above = log.levels(id, modelKey);
    if (Object.keys(above).length > 0) policies.set(modelKey, effectiveSettings(above).settings);
  }
  return {
    ...base,
    read: {
      worker,
      model,
      history: log.history(id, key, basedOn),
      otherHistories: log.histories(id),
      residentPolicies: policies,
    },
  };
}

/**
 * Makes decisions again from what the log holds, and compares: the same code on the same facts must give the same plan.
 * @param captured in any order; made again in the order of their time
 */
export function reproduce(captured: readonly CapturedDecision[], calls: SeenCalls): Reproduced {
  const differences = new Map<CapturedDecision, Difference>();
  for (const one of [...captured].sort((a, b) => a.nowMs - b.nowMs)) {
    const difference = differenceOf(one, calls);
    if (difference) differences.set(one, difference);
  }
  return {
    decisions: captured.length,
    identical: captured.length - differences.size,
    differences: captured.flatMap((one) => differences.get(one) ?? []),
  };
}

function differenceOf(captured: CapturedDecision, calls: SeenCalls): Difference | undefined {
  const { data, read } = captured;
  const base = {
    decisionId: data.decisionId,
    at: captured.at,
    workerId: captured.workerId,
    modelKey: data.modelKey,
  };
  if (!read) return { ...base, fields: [], reason: captured.missing ?? 'the log lacks what it was based on' };
  const outcome = decide(inputOf(captured, read, calls));
  const fields = compare(choiceOf(data), choiceOfOutcome(outcome));
  return fields.length === 0 ? undefined : { ...base, fields, reason: whyDifferent(data) };
}

function whyDifferent(data: Taken): string {
  if (data.policy.version !== POLICY_VERSION)
    return `it was taken under version ${data.policy.version} of the rules; these are version ${POLICY_VERSION}`;
  if (!data.given)
    return 'it was written before decisions kept the facts of the moment; calls under way and settings of the call are guessed';
  return 'not known: the same rules on what the log holds give another plan';
}

function inputOf(
  captured: CapturedDecision,
  read: NonNullable<CapturedDecision['read']>,
  calls: SeenCalls,
): PlacementInput {
  const { data, nowMs } = captured;
  const { given } = data;
  const ticket = ticketOf(captured, calls);
  const queue = data.queue.flatMap(({ callId }) => {
    if (callId === ticket?.callId) return [ticket];
    const seen = calls.get(callId)?.started;
    if (!seen) return [];
    return [
      {
        callId,
        modelKey: seen.modelKey,
        arrivedAtMs: Date.parse(seen.receivedAt),
        arrival: 0,
        background: seen.background,
        promptTokens: promptEstimate(seen),
      },
    ];
  });
  const models = new Set<ModelKey>([data.modelKey, ...queue.map((t) => t.modelKey)]);
  for (const { modelKey } of read.worker.residents.values()) models.add(modelKey);
  return {
    ...read,
    calls: new Map([...models].map((key) => [key, calls.historyAt(key, nowMs)])),
    activity: activityOf(captured, read.worker.residents.keys(), calls),
    settings: settingsOf(captured),
    ask: data.ask,
    ...('priority' in data ? { callPriority: data.priority } : {}),
    cause: data.cause,
    ...(ticket ? { ticket } : {}),
    queue,
    unprojectable: given ? new Set(given.unprojectable) : NOTHING_PROJECTS,
    basedOn: data.basedOn,
    decisionId: data.decisionId,
    residentId: 'residentId' in data ? data.residentId : residentId('refused'),
    nowMs,
  };
}

function ticketOf({ data, nowMs }: CapturedDecision, calls: SeenCalls): Ticket | undefined {
  if (data.cause.kind !== 'call') return undefined;
  const { callId } = data.cause;
  const given = data.given?.call;
  const seen = calls.get(callId)?.started;
  const arrivedAt = given?.arrivedAt ?? seen?.receivedAt;
  const maxTokens = given ? given.maxTokens : seen?.maxTokens;
  return {
    callId,
    modelKey: data.modelKey,
    arrivedAtMs: arrivedAt === undefined ? nowMs : Date.parse(arrivedAt),
    arrival: 0,
    background: given?.background ?? seen?.background ?? false,
    promptTokens: given?.promptTokens ?? (seen ? promptEstimate(seen) : 0),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  };
}

function settingsOf({ data, levels }: CapturedDecision): EffectiveSettings {
  if (data.given) return { ...defaultSettings, ...data.given.settings };
  return effectiveSettings(levels).settings;
}

function activityOf(
  { data, nowMs }: CapturedDecision,
  residents: Iterable<ResidentId>,
  calls: SeenCalls,
): ReadonlyMap<ResidentId, ResidentActivity> {
  const all = new Map<ResidentId, ResidentActivity>();
  if (data.given) {
    for (const given of data.given.activity) {
      const { residentId, calls: callsInFlight, lastEndedAt, freeInSeconds, alsoElsewhere } = given;
      all.set(residentId, {
        callsInFlight,
        ...(lastEndedAt === undefined ? {} : { lastCallEndedAtMs: Date.parse(lastEndedAt) }),
        ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
        ...(alsoElsewhere ? { alsoElsewhere } : {}),
      });
    }
    return all;
  }
  for (const id of residents) {
    const activity = calls.activityAt(id, nowMs);
    if (activity) all.set(id, activity);
  }
  return all;
}

/** What a decision comes to, by the names of its parts. */
type Choice = Readonly<Record<string, string>>;

const choiceOf = (data: Taken): Choice =>
  'artifact' in data ? planOf(data) : { outcome: `refused ${data.code}` };

function choiceOfOutcome(outcome: PlacementOutcome): Choice {
  switch (outcome.kind) {
    case 'decided':
      return planOf(outcome.data);
    case 'refused':
      return { outcome: `refused ${outcome.data.code}` };
    case 'reuse':
    case 'join':
      return { outcome: `${outcome.kind} ${outcome.residentId}` };
    case 'project':
      return { outcome: 'ask the engine first' };
    case 'wait':
      return { outcome: `wait: ${outcome.reason}` };
  }
}

function planOf({ artifact, rung, contract, devices, victims }: PlacementDecidedData): Choice {
  return {
    outcome: 'placed',
    artifact,
    rung,
    context: String(contract.contextTokens),
    kvType: contract.kvType,
    slots: String(contract.slots),
    layers: `${contract.gpuLayers} on the card, experts of ${contract.cpuMoeLayers} in RAM`,
    threads: String(contract.threads),
    cores: contract.cores?.join(' ') ?? 'any',
    devices: devices.join(' '),
    victims: victims
      .map((v) => v.residentId)
      .sort(compareText)
      .join(' '),
  };
}

function compare(logged: Choice, again: Choice): Difference['fields'] {
  if (logged['outcome'] !== again['outcome'])
    return [{ field: 'outcome', logged: logged['outcome'] ?? '', again: again['outcome'] ?? '' }];
  return Object.keys(logged).flatMap((field) => {
    const [one = '', other = ''] = [logged[field], again[field]];
    return one === other ? [] : [{ field, logged: one, again: other }];
  });
}
