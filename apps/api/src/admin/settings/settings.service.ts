import { Inject, Injectable } from '@nestjs/common';
import { modelKey, workerId } from '#domain/ids.js';
import {
  changeSettings,
  effectiveSettings,
  initialSettings,
  levelOf,
  scopesAbove,
  type SettingsState,
} from '#domain/settings/settings.js';
import { streams } from '#events/streams.js';
import { Fleet } from '../../fleet/fleet.js';
import { CommandLog, expecting, type Written } from '../commands/command-log.js';
import { SETTING_DEFAULTS, whyNotSet } from './setting-table.js';
import { fail } from '../problem/fail.js';

const TRIES = 5;

/** The settings of one scope: what is set there, what is inherited, what holds, and where each value comes from. */
@Injectable()
export class SettingsService {
  readonly #log: CommandLog;
  readonly #fleet: Fleet;

  constructor(@Inject(CommandLog) log: CommandLog, @Inject(Fleet) fleet: Fleet) {
    this.#log = log;
    this.#fleet = fleet;
  }

  /** As the log has it now, not as a subscription had it. */
  async read(scope: string) {
    this.#known(scope);
    const scopes = scopesAbove(scope);
    for (const above of scopes) await this.#fleet.catchUpSettings(above);
    const states = scopes.map((above) => this.#state(above));
    const own = this.#state(scope);
    return {
      scope,
      level: levelOf(scope),
      revision: own.revision,
      own: Object.fromEntries(own.values),
      inherited: Object.fromEntries(effectiveSettings(SETTING_DEFAULTS, states.slice(0, -1))),
      effective: Object.fromEntries(effectiveSettings(SETTING_DEFAULTS, states)),
    };
  }

  /** @throws BerthFailure `conflict` when a revision was named and the scope has another one. */
  async change(
    scope: string,
    values: Readonly<Record<string, unknown>>,
    by: string,
    revision?: number,
  ): Promise<{ readonly scope: string; readonly changed: readonly string[] } & Partial<Written>> {
    this.#known(scope);
    const level = levelOf(scope);
    for (const [name, value] of Object.entries(values)) {
      const why = whyNotSet(name, value, level);
      if (why !== undefined) fail('invalid_request', why, name);
    }
    for (let tries = 1; tries <= TRIES; tries += 1) {
      await this.#fleet.catchUpSettings(scope);
      const state = this.#state(scope);
      if (revision !== undefined && revision !== state.revision) break;
      const [event] = changeSettings(state, values, by);
      if (!event) {
        // Asked again: a pin that did not reach the worker's stream is brought there now.
        if ('pinned' in values) await this.#pin(scope, by);
        return { scope, changed: [], revision: state.revision };
      }
      const written = await this.#log.append(streams.settings(scope), event, expecting(state.revision));
      if (!written) continue;
      await this.#fleet.catchUpSettings(scope);
      if ('pinned' in values) await this.#pin(scope, by);
      return { scope, changed: Object.keys(event.data.patch), ...written };
    }
    const now = this.#state(scope).revision;
    const message = `The settings of ${scope} stand at revision ${now}${revision === undefined ? '' : `, not ${revision}`}: somebody changed them. Read them again.`;
    fail('conflict', message, { details: { revision: now } });
  }

  /**
   * Says a pair's pin in its worker's stream too, so that it is guarded as limits are: a decision that was made without
   * it is not taken any more.
   */
  async #pin(scope: string, by: string): Promise<void> {
    const [worker = '', ...rest] = scope.split('~');
    const id = workerId(worker);
    const key = modelKey(rest.join('~'));
    for (let tries = 1; tries <= TRIES; tries += 1) {
      await this.#fleet.catchUpWorker(id);
      const state = this.#fleet.worker(id);
      const pinned = this.#state(scope).values.get('pinned')?.value === true;
      if (!state || state.pins.has(key) === pinned) return;
      const event = { type: 'PinSet' as const, data: { modelKey: key, pinned, by } };
      if (await this.#log.append(streams.worker(id), event, expecting(state.revision))) {
        await this.#fleet.catchUpWorker(id);
        return;
      }
    }
    fail('conflict', 'The pin is set, and decisions are written for this worker just now. Set it again.');
  }

  #state(scope: string): SettingsState {
    return this.#fleet.settings.of(scope) ?? initialSettings(scope);
  }

  /** @throws BerthFailure `not_found` for what is neither the fleet, nor a worker, nor a model on one. */
  #known(scope: string): void {
    const level = levelOf(scope);
    const [worker = '', ...rest] = scope.split('~');
    const known =
      level === 'fleet' ||
      (this.#fleet.worker(workerId(worker)) !== undefined &&
        (level === 'worker' ||
          this.#fleet.modelOn(workerId(worker), modelKey(rest.join('~'))) !== undefined));
    if (known) return;
    const message = `There is no scope "${scope.slice(0, 200)}". Scopes are fleet, the id of a worker, or WORKER~MODEL for a model on it.`;
    fail('not_found', message, 'scope');
  }
}
