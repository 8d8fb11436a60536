import type { OperatorEvent } from '#domain/events/index.js';
import { callId, type WorkerId } from '#domain/ids.js';
import { hasEnded, type OperatorAction, type OperatorState } from '#domain/operator/operator.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import type { Resident } from '#domain/worker/state.js';
import { resolveModel } from '#domain/catalog/catalog.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { parseModelName } from '#placement/model-name.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { Admission } from '../admission/admission.js';
import type { Wanted } from '../admission/port.js';
import { termsOf } from '../admission/terms.js';
import type { Fleet } from '../fleet/fleet.js';
import { memoryOf } from '../live/fold/resident-items.js';
import type { OperatorBook } from './operator-book.js';

export interface OperatorLoadsOptions {
  readonly book: OperatorBook;
  readonly fleet: Pick<Fleet, 'modelsOn' | 'settings'>;
  readonly admission: Pick<Admission, 'enqueue'>;
  readonly log: Pick<EventLog, 'append'>;
  readonly logger: Logger;
  readonly now: () => number;
}

/** What nobody could begin within this is not done any more: who asked has long looked elsewhere. */
const ACTION_VALID_MS = 600_000;

/**
 * Loads that operators asked for. One waits in the queue as a call does, and makes room as a call does; it needs no slot.
 * Every api does it: the decision is taken once, by the expected revision, and the end has a derived id.
 */
export class OperatorLoads {
  readonly #o: OperatorLoadsOptions;
  readonly #under = new Set<string>();

  constructor(options: OperatorLoadsOptions) {
    this.#o = options;
    options.book.listen((state) => this.#look(state));
  }

  #look({ workerId: id, actions }: OperatorState): void {
    for (const action of actions.values()) {
      if (action.action !== 'load' || hasEnded(action) || this.#under.has(action.actionId)) continue;
      this.#under.add(action.actionId);
      void this.#load(id, action)
        .catch((error: unknown) =>
          this.#o.logger.warn({ err: error, action: action.actionId }, 'a load that was asked for was left'),
        )
        .finally(() => this.#under.delete(action.actionId));
    }
  }

  async #load(id: WorkerId, action: OperatorAction): Promise<void> {
    const { actionId } = action;
    const wanted = this.#wanted(id, action);
    if (typeof wanted === 'string') {
      await this.#finish(id, actionId, 'failed', wanted);
      return;
    }
    await this.#append(id, { type: 'OperatorActionStarted', data: { actionId } });
    const before = this.#o.now();
    const end = await this.#o.admission.enqueue(wanted).ended;
    if (end.kind === 'admitted') {
      const { lease, decidedAtMs } = end.call;
      lease.release();
      const took = decidedAtMs === undefined ? undefined : (this.#o.now() - before) / 1000;
      await this.#finish(id, actionId, 'done', loaded(lease.resident, took));
    } else if (end.kind === 'refused' && end.error.code !== 'shutting_down') {
      await this.#finish(id, actionId, 'failed', end.error.message);
    }
  }

  /** @returns why it cannot be asked for, in a sentence. */
  #wanted(id: WorkerId, { actionId, target, requestedAt }: OperatorAction): Wanted | string {
    const { fleet, now } = this.#o;
    const askedAtMs = Date.parse(requestedAt);
    if (now() - askedAtMs > ACTION_VALID_MS)
      return `It was asked for at ${requestedAt}, and nobody could begin it within ${formatSeconds(ACTION_VALID_MS / 1000)}. Ask again.`;
    const name = parseModelName(target);
    if (!name.ok) return name.error.message;
    const model = resolveModel(fleet.modelsOn(id), name.value.name);
    if (!model) return `There is no model "${name.value.name}" on this worker. \`berth models\` lists them.`;
    const { options } = name.value;
    return {
      callId: callId(actionId),
      model,
      options,
      ...termsOf(model, options, fleet.settings.levels(id, model.modelKey)),
      background: false,
      promptTokens: 0,
      receivedAtMs: now(),
      worker: id,
      cause: { kind: 'operator' },
    };
  }

  #finish(id: WorkerId, actionId: string, state: 'done' | 'failed', result: string): Promise<void> {
    return this.#append(id, { type: 'OperatorActionFinished', data: { actionId, state, result } });
  }

  async #append(id: WorkerId, event: OperatorEvent): Promise<void> {
    const { actionId } = event.data;
    const outcome = await this.#o.log.append(
      streams.operator(id),
      [
        {
          id: derivedId(event.type, actionId),
          event,
          cause: { correlationId: actionId, causationId: actionId },
        },
      ],
      'any',
    );
    if (outcome.ok) return;
    const why = outcome.error.kind === 'conflict' ? 'conflict' : outcome.error.message;
    throw new Error(`The event log did not take ${event.type}: ${why}`);
  }
}

/** @param tookSeconds undefined when it was there already. */
function loaded(resident: Resident, tookSeconds: number | undefined): string {
  const { modelKey, artifact, rung, contract } = resident;
  const memory = memoryOf(resident)
    .filter(({ bytes }) => bytes > 0)
    .map(({ deviceId, bytes }) => `${formatBytes(bytes)} on ${deviceId}`)
    .join(', ');
  const what = `${modelKey} (${artifact}, ${rung}, context ${contract.contextTokens}, ${memory})`;
  return tookSeconds === undefined
    ? `${what} was loaded already.`
    : `${what} is loaded after ${formatSeconds(tookSeconds)}.`;
}
