import type { OperatorEvent, Recorded } from '#domain/events/index.js';
import { residentId, type WorkerId } from '#domain/ids.js';
import {
  evolveOperator,
  hasEnded,
  initialOperator,
  type OperatorAction,
  type OperatorState,
} from '#domain/operator/operator.js';
import { formatSeconds } from '#domain/units.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { Executor } from '../agent/executor.js';
import type { FactWriter, Why } from '../agent/facts.js';
import type { Catalog } from '../models/catalog.js';
import { type ActionEnd, done, failed } from './action-end.js';
import { evictAll, evictOne } from './evictions.js';
import { removeModel } from './remove-model.js';

export interface OperatorTasksOptions {
  readonly workerId: WorkerId;
  readonly log: Pick<EventLog, 'subscribe'>;
  readonly facts: FactWriter;
  readonly executor: Executor;
  readonly catalog: Catalog;
  /** Berth's own folder of models. */
  readonly models: string;
  readonly adoptedEngines: () => number;
  /** Ends this process, so that a supervisor starts it again; its engines stay. */
  readonly restart: () => void;
  readonly logger: Logger;
}

/** What nobody could begin within this is not done any more: who asked has long looked elsewhere. */
const VALID_MS = 600_000;

/**
 * Does what operators ask of this worker, in their order. The log says what is open: one that an agent before this one
 * began is done again, which changes nothing where it was done. Loads are an api's.
 */
export class OperatorTasks {
  readonly #o: OperatorTasksOptions;
  #state: OperatorState;
  #live = false;
  #stopped = false;
  #last: Promise<void> = Promise.resolve();
  readonly #taken = new Set<string>();
  #subscription: Subscription | undefined;

  constructor(options: OperatorTasksOptions) {
    this.#o = options;
    this.#state = initialOperator(options.workerId);
  }

  /** Called once decisions are acted on. */
  start(): void {
    const { log, workerId, logger } = this.#o;
    this.#subscription = log.subscribe<OperatorEvent>(streams.operator(workerId), {
      onEvent: (recorded) => this.#fold(recorded),
      onCaughtUp: () => {
        this.#live = true;
        this.#look();
      },
    });
    this.#subscription.ended.catch((error: unknown) =>
      logger.error({ err: error }, 'what operators ask is not heard any more'),
    );
  }

  /** What is under way is not waited for: the next agent finds it open. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#subscription?.stop();
  }

  /** Asked anew: it may have come while something was waited for. */
  #ended(): boolean {
    return this.#stopped;
  }

  #fold(recorded: Recorded<OperatorEvent>): void {
    this.#state = evolveOperator(this.#state, recorded);
    if (this.#live) this.#look();
  }

  #look(): void {
    for (const action of this.#state.actions.values()) {
      if (action.action === 'load' || hasEnded(action) || this.#taken.has(action.actionId)) continue;
      this.#taken.add(action.actionId);
      this.#last = this.#last.then(() => this.#do(action));
    }
  }

  async #do(action: OperatorAction): Promise<void> {
    const { actionId } = action;
    const { facts, logger } = this.#o;
    if (this.#stopped) return;
    const why: Why = { correlationId: actionId, causationId: actionId };
    const write = (event: OperatorEvent) => facts.operator(derivedId(event.type, actionId), event, why);
    try {
      if (action.state === 'requested' && Date.now() - Date.parse(action.requestedAt) > VALID_MS) {
        const result = `It was asked for at ${action.requestedAt}, and no agent could begin it within ${formatSeconds(VALID_MS / 1000)}. Ask again.`;
        await write({ type: 'OperatorActionFinished', data: { actionId, ...failed(result) } });
        return;
      }
      await write({ type: 'OperatorActionStarted', data: { actionId } });
      const end = await this.#perform(action, why).catch((error: unknown) => {
        logger.error({ err: error, action: action.action }, 'what an operator asked for failed');
        return failed(error instanceof Error ? error.message : String(error));
      });
      if (end && !this.#ended()) await write({ type: 'OperatorActionFinished', data: { actionId, ...end } });
    } catch (error) {
      logger.warn(
        { err: error, action: action.action },
        'the log was not told of what an operator asked for',
      );
    }
  }

  /** @returns nothing for what this process does not see the end of. */
  async #perform(action: OperatorAction, why: Why): Promise<ActionEnd | undefined> {
    const { executor, catalog, models, logger } = this.#o;
    switch (action.action) {
      case 'evict':
        return evictOne(executor, residentId(action.target), why);
      case 'evict-all':
        return evictAll(executor, why);
      case 'refresh-models': {
        const before = new Set(catalog.models().map((model) => model.modelKey));
        await catalog.rescan();
        const now = catalog.models().map((model) => model.modelKey);
        const added = now.filter((key) => !before.has(key));
        const gone = [...before].filter((key) => !now.includes(key));
        return done(
          `${now.length} models are on this machine${listed('; new: ', added)}${listed('; gone: ', gone)}.`,
        );
      }
      case 'remove-model':
        return removeModel(action.target, { state: () => executor.state, catalog, models });
      case 'restart-agent': {
        if (action.state === 'running') {
          const adopted = this.#o.adoptedEngines();
          return done(`The agent runs again (pid ${process.pid}); ${adopted} engines went on meanwhile.`);
        }
        logger.warn('the agent ends to be started again, as an operator asked; its engines go on');
        this.#o.restart();
        return undefined;
      }
      default:
        return failed(
          `This agent does not know "${action.action}". Its version may be older than the api's.`,
        );
    }
  }
}

const listed = (before: string, keys: readonly string[]): string =>
  keys.length === 0 ? '' : `${before}${keys.slice(0, 10).join(', ')}${keys.length > 10 ? ', …' : ''}`;
