import { Inject, Injectable } from '@nestjs/common';
import { type WorkerId, workerId } from '#domain/ids.js';
import { hasEnded, type OperatorAction, requestAction } from '#domain/operator/operator.js';
import type { OperatorAccepted, OperatorActionName } from '#domain/wire/index.js';
import { streams } from '#events/streams.js';
import { derivedId, newId } from '#runtime/ids.js';
import { Fleet } from '../../fleet/fleet.js';
import { operatorItem } from '../../live/fold/other-items.js';
import { CommandLog, expecting } from '../commands/command-log.js';
import { fail } from '../problem/fail.js';
import { OPERATOR_PORTS, type OperatorPorts } from './operator-ports.js';
import type { RequestAction } from './operator.dto.js';
import { OperatorTargets } from './operator-targets.js';
import { calledBy, namesOf, refuseUnconnected, registeredIn } from './operator-workers.js';

/** Written by others between our look and our append; more would be no accident. */
const TRIES = 5;

/** Commands to workers: each is an event that the worker's agent, or an api for a load, acts on and ends. */
@Injectable()
export class OperatorService {
  readonly #log: CommandLog;
  readonly #fleet: Fleet;
  readonly #ports: OperatorPorts;
  readonly #targets: OperatorTargets;

  constructor(
    @Inject(CommandLog) log: CommandLog,
    @Inject(Fleet) fleet: Fleet,
    @Inject(OPERATOR_PORTS) ports: OperatorPorts,
  ) {
    this.#log = log;
    this.#fleet = fleet;
    this.#ports = ports;
    this.#targets = new OperatorTargets(fleet, ports.waitingFor);
  }

  /**
   * The same key is the same action; without one, an action that has not ended is the same as another of its kind and target.
   * @throws BerthFailure that says why it cannot be done, as far as that is known before it is tried
   */
  async request(asked: RequestAction, by: string, key?: string): Promise<OperatorAccepted> {
    const worker = this.#workerOf(asked);
    const target = this.#targets.name(worker, asked);
    const keyed = key === undefined ? undefined : derivedId('operator', worker, key);
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const state = await this.#ports.book.catchUp(worker);
      const same =
        keyed === undefined ? openOf(state.actions, asked.action, target) : state.actions.get(keyed);
      if (same) {
        if (same.action === asked.action && same.target === target) return operatorItem(worker, same);
        fail(
          'conflict',
          `This Idempotency-Key was used for ${[same.action, same.target].filter(Boolean).join(' ')}. Send another one.`,
        );
      }
      this.#targets.check(worker, asked.action, target);
      if (!this.#ports.isConnected(worker)) refuseUnconnected(this.#fleet.worker(worker)?.name ?? worker);
      const actionId = keyed ?? newId();
      const [event] = requestAction(state, { actionId, action: asked.action, target, by });
      if (!event) continue;
      const id = derivedId(event.type, actionId);
      const written = await this.#log.append(streams.operator(worker), event, expecting(state.revision), id);
      if (!written) continue;
      const now = await this.#ports.book.catchUp(worker);
      const action = now.actions.get(actionId);
      if (action) return { ...operatorItem(worker, action), ...written };
    }
    fail('conflict', 'Others ask things of this worker just now. Try again.');
  }

  /** The one that is named; else the one that has the target; else the only one. */
  #workerOf({ worker, action, target }: RequestAction): WorkerId {
    const known = registeredIn(this.#fleet);
    if (worker !== undefined) {
      const [only, ...more] = calledBy(known, worker);
      if (only && more.length === 0) return only.workerId;
      fail(
        'not_found',
        `There is no one worker "${worker.slice(0, 200)}". There are: ${namesOf(known) || 'none'}.`,
        'worker',
      );
    }
    const having = target === undefined ? [] : this.#targets.workersWith(action, target);
    const candidates = having.length > 0 ? having : known.map((w) => w.workerId);
    const [only, ...more] = candidates;
    if (only !== undefined && more.length === 0) return workerId(only);
    const message =
      candidates.length === 0 ? 'There is no worker yet.' : 'Name a worker: more than one could do this.';
    fail('invalid_request', `${message} GET /admin/workers lists them.`, 'worker');
  }
}

const openOf = (
  actions: ReadonlyMap<string, OperatorAction>,
  action: OperatorActionName,
  target: string,
): OperatorAction | undefined =>
  [...actions.values()].find((a) => a.action === action && a.target === target && !hasEnded(a));
