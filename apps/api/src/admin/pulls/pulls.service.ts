import { Inject, Injectable } from '@nestjs/common';
import type { PullEvent } from '#domain/events/index.js';
import type { WorkerId } from '#domain/ids.js';
import { evolvePulls, initialPulls } from '#domain/pulls/pulls.js';
import type { PullItem, WireWritten } from '#domain/wire/index.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import { Fleet } from '../../fleet/fleet.js';
import { pullItem } from '../../live/fold/other-items.js';
import { CommandLog, EVENT_LOG, expecting } from '../commands/command-log.js';
import { OPERATOR_PORTS, type OperatorPorts } from '../operator/operator-ports.js';
import { calledBy, namesOf, refuseUnconnected, registeredIn } from '../operator/operator-workers.js';
import { fail } from '../problem/fail.js';

const TRIES = 5;

/** Transfers onto workers: what is asked for is an event that the worker's agent acts on and ends. */
@Injectable()
export class PullsService {
  readonly #commands: CommandLog;
  readonly #log: Pick<EventLog, 'fold'>;
  readonly #fleet: Fleet;
  readonly #ports: OperatorPorts;

  constructor(
    @Inject(CommandLog) commands: CommandLog,
    @Inject(EVENT_LOG) log: Pick<EventLog, 'fold'>,
    @Inject(Fleet) fleet: Fleet,
    @Inject(OPERATOR_PORTS) ports: OperatorPorts,
  ) {
    this.#commands = commands;
    this.#log = log;
    this.#fleet = fleet;
    this.#ports = ports;
  }

  /** The same source that is being fetched already is that transfer. */
  async request(source: string, worker: string | undefined, by: string): Promise<PullItem & WireWritten> {
    const id = this.#workerOf(worker);
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const state = await this.#log.fold(streams.pull(id), initialPulls(id), evolvePulls);
      const running = [...state.pulls.values()].find((p) => p.source === source && p.state === 'running');
      if (running) return pullItem(id, running);
      const pullId = newId();
      const event: PullEvent = { type: 'PullRequested', data: { pullId, source, by } };
      const written = await this.#commands.append(streams.pull(id), event, expecting(state.revision), pullId);
      if (!written) continue;
      const requestedAt = new Date().toISOString();
      return {
        ...pullItem(id, { pullId, source, by, state: 'running', files: [], requestedAt }),
        ...written,
      };
    }
    fail('conflict', 'Others ask for transfers just now. Try again.');
  }

  #workerOf(named: string | undefined): WorkerId {
    const known = registeredIn(this.#fleet);
    const [only, ...more] = named === undefined ? known : calledBy(known, named);
    if (!only || more.length > 0) {
      const names = namesOf(known) || 'none yet';
      fail('invalid_request', `Name one worker as \`worker\`. There are: ${names}.`, 'worker');
    }
    if (this.#ports.isConnected(only.workerId)) return only.workerId;
    return refuseUnconnected(only.name);
  }
}
